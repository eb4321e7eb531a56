//go:build kubernetes

package kubernetes

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	podsPath   = "/api/v1/namespaces/default/pods"
	slicesPath = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
)

// call makes a request as the admin and decodes the answer into out, nil for none. It returns the status.
func (a *api) call(method, path string, in, out any) int {
	a.Helper()
	var body []byte
	switch in := in.(type) {
	case nil:
	case []byte:
		body = in
	default:
		var err error
		if body, err = json.Marshal(in); err != nil {
			a.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(a.Context(), method, a.URL+path, bytes.NewReader(body))
	if err != nil {
		a.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+a.Token)
	req.Header.Set("Content-Type", "application/json")
	client := a.client()
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		a.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		a.Fatal(err)
	}
	if res.StatusCode >= 400 {
		a.Logf("%s %s: %d %.500s", method, path, res.StatusCode, answer)
	} else if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			a.Fatal(err)
		}
	}
	return res.StatusCode
}

func (a *api) client() *http.Client {
	a.Helper()
	pem, err := os.ReadFile(a.CAFile)
	if err != nil {
		a.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

// must is call that must succeed.
func (a *api) must(method, path string, in, out any) {
	a.Helper()
	if status := a.call(method, path, in, out); status >= 300 {
		a.Fatalf("%s %s: status %d", method, path, status)
	}
}

// pod is one of app=engine with a serving port named http.
func pod(name string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "engine"}, Annotations: annotations},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "engine", Image: "example/none", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8000}, {Name: "zmq", ContainerPort: 5557}},
		}}},
	}
}

// stated are annotations that say all: nothing is asked.
func stated(more ...string) map[string]string {
	all := map[string]string{
		"kvscout.io/ask": "false", "kvscout.io/engine": "vllm", "kvscout.io/model": "org/m", "kvscout.io/events-port": "5557",
	}
	for i := 0; i < len(more); i += 2 {
		all["kvscout.io/"+more[i]] = more[i+1]
	}
	return all
}

func (a *api) create(p *corev1.Pod) {
	a.Helper()
	a.must(http.MethodPost, podsPath, p, p)
}

// running writes what a kubelet would: the pod runs at ip.
func (a *api) running(name, ip string, ready bool) {
	a.Helper()
	is := corev1.ConditionFalse
	if ready {
		is = corev1.ConditionTrue
	}
	a.status(name, corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: is}},
	})
}

func (a *api) status(name string, s corev1.PodStatus) {
	a.Helper()
	var p corev1.Pod
	a.must(http.MethodGet, podsPath+"/"+name, nil, &p)
	p.Status = s
	a.must(http.MethodPut, podsPath+"/"+name+"/status", &p, nil)
}

// remove deletes a pod at once, as a kubelet does when it has ended.
func (a *api) remove(name string) {
	a.Helper()
	a.must(http.MethodDelete, podsPath+"/"+name+"?gracePeriodSeconds=0", nil, nil)
}

// slice is one of the service "engines", with a port named http.
func slice(name string, family discoveryv1.AddressType, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	port, portName := int32(8000), "http"
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			discoveryv1.LabelServiceName: "engines", "kvscout.io/role": "prefill", "kvscout.io/engine": "sglang",
			"kvscout.io/model": "m", "kvscout.io/events-port": "5557", "kvscout.io/ask": "false",
		}},
		AddressType: family, Ports: []discoveryv1.EndpointPort{{Name: &portName, Port: &port}}, Endpoints: endpoints,
	}
}

func endpoint(ip, pod string, ready, terminating bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Terminating: &terminating},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: pod, UID: types.UID("uid-of-" + pod)},
	}
}

func (a *api) putSlice(s *discoveryv1.EndpointSlice) {
	a.Helper()
	s.ResourceVersion = ""
	a.must(http.MethodPut, slicesPath+"/"+s.Name, s, nil)
}

func (a *api) createSlice(s *discoveryv1.EndpointSlice) {
	a.Helper()
	a.must(http.MethodPost, slicesPath, s, nil)
}

// churn writes n revisions that concern no worker.
func (a *api) churn(n int) {
	a.Helper()
	for range n {
		var m corev1.ConfigMap
		a.must(http.MethodPost, "/api/v1/namespaces/default/configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "churn-"}}, &m)
	}
}

// token makes a ServiceAccount, unless it is there, and gives a token of it.
func (a *api) token(account string) string {
	a.Helper()
	base := "/api/v1/namespaces/default/serviceaccounts"
	if a.call(http.MethodGet, base+"/"+account, nil, nil) == http.StatusNotFound {
		a.must(http.MethodPost, base, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, nil)
	}
	var answer struct {
		Status struct{ Token string }
	}
	a.must(http.MethodPost, fmt.Sprintf("%s/%s/token", base, account),
		[]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`), &answer)
	return answer.Status.Token
}
