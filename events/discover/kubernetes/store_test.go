package kubernetes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvscout/kvscout/events/discover"
)

func running(name, uid, ip string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip},
	}
}

func podStore() *store { return newStore(translator{port: DefaultPort, id: IDAddress}) }

func ids(s *store) string {
	var out []string
	for _, w := range s.take().workers {
		out = append(out, w.ID)
	}
	return strings.Join(out, " ")
}

// Invariant 1: nothing is told before a list is complete, whatever comes.
func TestStore_NothingBeforeList(t *testing.T) {
	s := podStore()
	if err := s.Add(running("p", "1", "10.0.0.1", nil)); err != nil {
		t.Fatal(err)
	}
	if st := s.take(); st.news || st.workers != nil || st.err != nil {
		t.Errorf("before a list: %+v", st)
	}
	s.failed(discover.ErrTooMany)
	if st := s.take(); st.news || st.err == nil {
		t.Errorf("a failure before a list: %+v", st)
	}
	if err := s.Replace([]any{running("q", "2", "10.0.0.2", nil)}, "5"); err != nil {
		t.Fatal(err)
	}
	if got := ids(s); got != "10.0.0.2:80" {
		t.Errorf("after the list: %q", got)
	}
}

// Invariant 4: what a fault keeps belongs to that very object, not to a later one of its name.
func TestStore_LastGoodSettings(t *testing.T) {
	s := podStore()
	good, bad := map[string]string{"kvscout.io/role": "decode"}, map[string]string{"kvscout.io/role": "chef"}
	if err := s.Replace([]any{running("p", "1", "10.0.0.1", good)}, "1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(running("p", "1", "10.0.0.9", bad)); err != nil { // its address is as it is now
		t.Fatal(err)
	}
	st := s.take()
	if len(st.workers) != 1 || st.workers[0].ID != "10.0.0.9:80" || st.workers[0].Role != discover.RoleDecode || st.err == nil {
		t.Errorf("with a fault: %+v", st)
	}
	if err := s.Replace([]any{running("p", "1", "10.0.0.9", bad)}, "2"); err != nil {
		t.Fatal(err)
	}
	if st := s.take(); len(st.workers) != 1 || st.err == nil {
		t.Errorf("with a fault, listed again: %+v", st)
	}
	if err := s.Update(running("p", "2", "10.0.0.9", bad)); err != nil {
		t.Fatal(err)
	}
	if st := s.take(); len(st.workers) != 0 || st.err == nil {
		t.Errorf("another pod of that name: %+v", st)
	}
}

// A change that concerns no worker is no news: pods' statuses change all the time.
func TestStore_NoNews(t *testing.T) {
	s := podStore()
	if err := s.Replace([]any{running("p", "1", "10.0.0.1", nil)}, "1"); err != nil {
		t.Fatal(err)
	}
	s.take()
	<-s.changed
	p := running("p", "1", "10.0.0.1", nil)
	p.ResourceVersion, p.Status.Message = "7", "still here"
	if err := s.Update(p); err != nil {
		t.Fatal(err)
	}
	if st := s.take(); st.news || len(s.changed) != 0 {
		t.Errorf("told %+v", st)
	}
}

// Invariant 2: a ready endpoint goes before one of the same address that is not, whichever slice comes first.
func TestStore_ReadyFirst(t *testing.T) {
	yes, no := true, false
	slice := func(name string, ready *bool) *discoveryv1.EndpointSlice {
		port := int32(80)
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name}, AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: &port}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}},
		}
	}
	for _, c := range []struct{ a, b *bool }{{&yes, &no}, {&no, &yes}, {nil, &no}} {
		s := podStore()
		if err := s.Replace([]any{slice("a", c.a), slice("b", c.b)}, "1"); err != nil {
			t.Fatal(err)
		}
		if st := s.take(); len(st.workers) != 1 || st.workers[0].Unready != "" {
			t.Errorf("told %+v", st.workers)
		}
	}
	s := podStore()
	fqdn := slice("f", &yes)
	fqdn.AddressType = "FQDN"
	if err := s.Replace([]any{fqdn}, "1"); err != nil {
		t.Fatal(err)
	}
	if st := s.take(); len(st.workers) != 0 || st.err == nil || !strings.Contains(st.err.Error(), "FQDN") {
		t.Errorf("an FQDN slice: %+v", st)
	}
}
