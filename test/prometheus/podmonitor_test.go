package prometheus

import (
	"os"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

const (
	podMonitor = "../../deploy/prometheus/podmonitor.yaml"
	deployment = "../../deploy/kubernetes/deployment.yaml"
)

// strict reads a manifest; a field that its type has not is a fault.
func strict(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// The operator's own types take the PodMonitor, which selects the pods of the Deployment and a port that they have.
func TestPodMonitor(t *testing.T) {
	var m monitoringv1.PodMonitor
	strict(t, podMonitor, &m)
	var d appsv1.Deployment
	strict(t, deployment, &d)
	if m.GroupVersionKind() != monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PodMonitorsKind) {
		t.Errorf("it is a %v", m.GroupVersionKind())
	}
	by, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
	if err != nil || by.Empty() || !by.Matches(labels.Set(d.Spec.Template.Labels)) {
		t.Errorf("it selects %v, the pods have %v: %v", by, d.Spec.Template.Labels, err)
	}
	for _, e := range m.Spec.PodMetricsEndpoints {
		found := false
		for _, p := range d.Spec.Template.Spec.Containers[0].Ports {
			found = found || e.Port != nil && p.Name == *e.Port && p.ContainerPort == 9471
		}
		if !found || e.Path != d.Spec.Template.Annotations["prometheus.io/path"] {
			t.Errorf("endpoint %+v is not of the pods", e)
		}
	}
	if len(m.Spec.PodMetricsEndpoints) != 1 {
		t.Errorf("%d endpoints", len(m.Spec.PodMetricsEndpoints))
	}
}
