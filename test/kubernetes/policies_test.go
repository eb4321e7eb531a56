//go:build kubernetes

package kubernetes

import (
	"net/http"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// party is a pod that connects, or that is connected to, with the label that every namespace has.
type party struct {
	namespace string
	labels    map[string]string
	ports     map[string]int32 // by name
}

// selects is what a selector of Kubernetes says; a nil one selects nothing.
func selects(t *testing.T, s *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	by, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return by.Matches(labels.Set(set))
}

// meets is whether a peer of a policy in the namespace default is p.
func meets(t *testing.T, peer networkingv1.NetworkPolicyPeer, p party) bool {
	t.Helper()
	if peer.IPBlock != nil {
		t.Fatal("addresses are not for this test")
	}
	in := p.namespace == "default"
	if peer.NamespaceSelector != nil {
		in = selects(t, peer.NamespaceSelector, map[string]string{"kubernetes.io/metadata.name": p.namespace})
	}
	return in && (peer.PodSelector == nil || selects(t, peer.PodSelector, p.labels))
}

// passes is whether a rule of peers and ports lets through what goes between its own pod and other, at a port of target.
func passes(t *testing.T, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort, other, target party, protocol corev1.Protocol, port int32) bool {
	t.Helper()
	met := len(peers) == 0
	for _, peer := range peers {
		met = met || meets(t, peer, other)
	}
	open := len(ports) == 0
	for _, p := range ports {
		number := p.Port.IntVal
		if p.Port.Type == intstr.String {
			number = target.ports[p.Port.StrVal]
		}
		open = open || *p.Protocol == protocol && number == port
	}
	return met && open
}

// Who reaches what under the shipped policies: callers and monitoring one port each, nobody another; kvscout its engines.
func TestNetworkPolicies(t *testing.T) {
	a := startAPI(t)
	a.apply()
	var d appsv1.Deployment
	a.must(http.MethodGet, kinds["Deployment"]+"/kvscout", nil, &d)
	scout := party{namespace: "default", labels: d.Spec.Template.Labels, ports: make(map[string]int32)}
	for _, p := range d.Spec.Template.Spec.Containers[0].Ports {
		scout.ports[p.Name] = p.ContainerPort
	}
	worker := party{"default", map[string]string{"kvscout.io/worker": "true"}, map[string]int32{"http": 8000, "zmq": 5557}}
	gateway, monitoring := party{namespace: "gateway"}, party{namespace: "monitoring"}
	other, far := party{namespace: "default"}, party{namespace: "elsewhere", labels: worker.labels}
	dns := party{namespace: "kube-system"}
	var policies networkingv1.NetworkPolicyList
	a.must(http.MethodGet, kinds["NetworkPolicy"], nil, &policies)
	for _, c := range []struct {
		name     string
		from, to party
		port     int32
		want     bool
	}{
		{"a picker scores", gateway, scout, scout.ports["grpc"], true},
		{"a picker reads profiles", gateway, scout, scout.ports["admin"], false},
		{"monitoring scrapes", monitoring, scout, scout.ports["admin"], true},
		{"monitoring scores", monitoring, scout, scout.ports["grpc"], false},
		{"a neighbour scores", other, scout, scout.ports["grpc"], false},
		{"a neighbour reads profiles", other, scout, scout.ports["admin"], false},
		{"an engine scores", worker, scout, scout.ports["grpc"], false},
		{"kvscout listens to an engine", scout, worker, 5557, true},
		{"kvscout asks for a replay", scout, worker, 5567, true},
		{"kvscout asks an engine", scout, worker, 8000, true},
		{"kvscout asks for a name", scout, dns, 53, true},
		{"kvscout sends traces", scout, monitoring, 4317, true},
		{"kvscout calls the API server", scout, far, 443, true},
		{"kvscout calls elsewhere", scout, far, 5557, false},
		{"kvscout calls a neighbour", scout, other, 8000, false},
		{"a neighbour reads events", other, worker, 5557, false},
		{"the gateway reads events", gateway, worker, 5557, false},
		{"the gateway sends a request", gateway, worker, 8000, true},
		{"monitoring scrapes an engine", monitoring, worker, 8000, true},
		{"engines exchange blocks", worker, worker, 5600, true},
	} {
		if got := reaches(t, policies.Items, c.from, c.to, c.port); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// reaches is whether from may connect to a TCP port of to: each side that a policy selects has to let it through.
func reaches(t *testing.T, policies []networkingv1.NetworkPolicy, from, to party, port int32) bool {
	t.Helper()
	out, in := true, true
	for _, p := range policies {
		for _, kind := range p.Spec.PolicyTypes {
			switch {
			case kind == networkingv1.PolicyTypeIngress && to.namespace == p.Namespace && selects(t, &p.Spec.PodSelector, to.labels):
				in = false
				for _, rule := range p.Spec.Ingress {
					in = in || passes(t, rule.From, rule.Ports, from, to, corev1.ProtocolTCP, port)
				}
			case kind == networkingv1.PolicyTypeEgress && from.namespace == p.Namespace && selects(t, &p.Spec.PodSelector, from.labels):
				out = false
				for _, rule := range p.Spec.Egress {
					out = out || passes(t, rule.To, rule.Ports, to, to, corev1.ProtocolTCP, port)
				}
			}
		}
	}
	return out && in
}
