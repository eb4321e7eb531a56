//go:build kubernetes

package kubernetes

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
)

// Pods come, get ready, change and go; another one takes over an address.
func TestPods_ComeChangeGo(t *testing.T) {
	a := startAPI(t)
	r := discoverBy(t, byPods(a.config("")), nil, nil)
	r.wait("the empty list", func() bool { return r.status().Reports == 1 })

	a.create(pod("p1", stated("role", "decode")))
	other := pod("other", stated())
	other.Labels["app"] = "database"
	a.create(other)
	a.running("other", "10.1.0.9", true)
	a.running("p1", "10.1.0.1", false)
	r.waitIDs("10.1.0.1:8000")
	r.wait("no credit while it is not ready", func() bool { return r.ill["10.1.0.1:8000"] != nil })
	a.running("p1", "10.1.0.1", true)
	r.wait("credit", func() bool { err, told := r.ill["10.1.0.1:8000"]; return told && err == nil })
	want := discover.Worker{
		ID: "10.1.0.1:8000", Role: discover.RoleDecode, Model: "org/m", Labels: map[string]string{"app": "engine", "kvscout.io/pod": "p1"},
	}
	got := r.find("10.1.0.1:8000")
	got.Sources = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	a.must(http.MethodDelete, podsPath+"/p1?gracePeriodSeconds=0", nil, nil)
	r.waitIDs("")
}

// What a pod's annotations say of its event streams.
func TestPods_Streams(t *testing.T) {
	a := startAPI(t)
	r := discoverBy(t, byPods(a.config("")), nil, nil)
	a.create(pod("p1", stated("replay-port", "5567", "ranks", "2", "block-size", "16", "topic", "kv@", "speculative", "eagle")))
	a.running("p1", "fd00::7", true)
	r.waitIDs("[fd00::7]:8000")
	want := []events.Source{
		{Worker: "[fd00::7]:8000", Engine: "vllm", Model: "org/m", BlockSize: 16, Topic: "kv@", SpeculativeEAGLE: true, Events: "tcp://[fd00::7]:5557", Replay: "tcp://[fd00::7]:5567"},
		{Worker: "[fd00::7]:8000", Rank: 1, Engine: "vllm", Model: "org/m", BlockSize: 16, Topic: "kv@", SpeculativeEAGLE: true, Events: "tcp://[fd00::7]:5558", Replay: "tcp://[fd00::7]:5568"},
	}
	if diff := cmp.Diff(want, r.find("[fd00::7]:8000").Sources); diff != "" {
		t.Error(diff)
	}

	// A role is changed while it runs; then a setting that cannot be read changes nothing, and shows.
	annotate := func(key, value string) {
		t.Helper()
		var p corev1.Pod
		a.must(http.MethodGet, podsPath+"/p1", nil, &p)
		p.Annotations[key] = value
		a.must(http.MethodPut, podsPath+"/p1", &p, nil)
	}
	annotate("kvscout.io/role", "prefill")
	r.wait("the role", func() bool { return r.worker("[fd00::7]:8000").Role == discover.RolePrefill })
	annotate("kvscout.io/role", "chef")
	r.wait("the fault", func() bool { return strings.Contains(r.status().Err, `p1: bad setting: kvscout.io/role="chef"`) })
	a.create(pod("p2", stated("blocksize", "16")))
	a.running("p2", "10.1.0.2", true)
	r.wait("both faults", func() bool { return strings.Contains(r.status().Err, "and 1 more") })
	a.create(pod("p3", stated()))
	a.running("p3", "10.1.0.3", true)
	r.waitIDs("10.1.0.3:8000 [fd00::7]:8000")
	if w := r.find("[fd00::7]:8000"); w.Role != discover.RolePrefill {
		t.Errorf("a wrong annotation made %+v", w)
	}
	annotate("kvscout.io/role", "both")
	a.remove("p2")
	r.wait("no fault", func() bool { return r.status().Err == "" && r.worker("[fd00::7]:8000").Role == discover.RoleBoth })
}

// A pod that ended has no say over the address that another one has now, and one that is being deleted goes at once.
func TestPods_EndAndAddress(t *testing.T) {
	a := startAPI(t)
	r := discoverBy(t, byPods(a.config("")), nil, nil)
	for _, name := range []string{"old", "new", "third"} {
		a.create(pod(name, stated()))
	}
	a.running("old", "10.1.0.1", true)
	r.wait("old", func() bool { return r.worker("10.1.0.1:8000").Labels["kvscout.io/pod"] == "old" })
	a.status("old", corev1.PodStatus{Phase: corev1.PodFailed, PodIP: "10.1.0.1", PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}}})
	r.waitIDs("")
	a.running("new", "10.1.0.1", true)
	r.wait("new at the address of old", func() bool { return r.worker("10.1.0.1:8000").Labels["kvscout.io/pod"] == "new" })
	a.running("third", "169.254.169.254", true)
	r.wait("the refused address", func() bool { return strings.Contains(r.status().Err, "third: address is refused: 169.254.169.254") })
	if got := r.listed(); got != "10.1.0.1:8000" {
		t.Errorf("workers %s", got)
	}
	var p corev1.Pod // with a node, a deletion has a grace period: the kubelet is to end it
	bound := pod("bound", stated())
	bound.Spec.NodeName = "n1"
	a.create(bound)
	a.running("bound", "10.1.0.5", true)
	r.waitIDs("10.1.0.1:8000 10.1.0.5:8000")
	a.must(http.MethodDelete, podsPath+"/bound", nil, nil)
	r.waitIDs("10.1.0.1:8000")
	if a.must(http.MethodGet, podsPath+"/bound", nil, &p); p.DeletionTimestamp == nil {
		t.Error("the pod was not being deleted")
	}
}

// A worker may be named by its pod.
func TestPods_IDName(t *testing.T) {
	a := startAPI(t)
	o := byPods(a.config(""))
	o.ID, o.Port = "name", "8080"
	r := discoverBy(t, o, nil, nil)
	a.create(pod("p1", map[string]string{"kvscout.io/engine": "sglang"}))
	a.running("p1", "10.1.0.1", true)
	r.wait("the worker, to be asked", func() bool { return len(r.last.Pending) == 1 && r.last.Pending[0].ID == "p1" })
}
