//go:build kubernetes

package kubernetes

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kvscout/kvscout/events/discover"
)

const manifests = "../../deploy/kubernetes"

// kinds are where objects of a kind are created.
var kinds = map[string]string{
	"ServiceAccount": "/api/v1/namespaces/default/serviceaccounts", "Service": "/api/v1/namespaces/default/services",
	"ConfigMap":     "/api/v1/namespaces/default/configmaps",
	"Deployment":    "/apis/apps/v1/namespaces/default/deployments",
	"NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
	"Role":          "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
	"RoleBinding":   "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
}

// manifestFiles are all in deploy/kubernetes, those included that are not applied with the folder.
func (a *api) manifestFiles() (files []string) {
	a.Helper()
	err := filepath.WalkDir(manifests, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		a.Fatalf("no manifests: %v", err)
	}
	return files
}

// apply creates everything in deploy/kubernetes. The API server refuses fields that it does not know.
func (a *api) apply() (applied map[string]int) {
	a.Helper()
	applied = make(map[string]int)
	for _, file := range a.manifestFiles() {
		content, err := os.ReadFile(file)
		if err != nil {
			a.Fatal(err)
		}
		dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			var doc json.RawMessage
			if err := dec.Decode(&doc); err == io.EOF {
				break
			} else if err != nil {
				a.Fatalf("%s: %v", file, err)
			}
			var meta metav1.TypeMeta
			if err := json.Unmarshal(doc, &meta); err != nil || kinds[meta.Kind] == "" {
				a.Fatalf("%s: kind %q: %v", file, meta.Kind, err)
			}
			a.must(http.MethodPost, kinds[meta.Kind]+"?fieldValidation=Strict", []byte(doc), nil)
			applied[meta.Kind]++
		}
	}
	return applied
}

// The API server takes every manifest, they fit together, and the Role gives the ServiceAccount what discovery needs and
// nothing else.
func TestManifests(t *testing.T) {
	a := startAPI(t)
	if applied := a.apply(); len(applied) != len(kinds) || applied["NetworkPolicy"] != 2 {
		t.Errorf("applied %v", applied)
	}
	a.consistent()
	token := a.token("kvscout")
	pods, slices := byPods(a.config(token)), bySlices(a.config(token))
	for _, o := range []*rig{discoverBy(t, pods, nil, nil), discoverBy(t, slices, nil, nil)} {
		o.wait("a report under the Role", func() bool { return o.status().Reports > 0 && o.status().Err == "" })
	}
	admin := a.Token
	a.Token = token
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, podsPath, http.StatusOK},
		{http.MethodGet, slicesPath, http.StatusOK},
		{http.MethodGet, podsPath + "?watch=true&timeoutSeconds=1", http.StatusOK},
		{http.MethodGet, slicesPath + "?watch=true&timeoutSeconds=1", http.StatusOK},
		{http.MethodGet, "/api/v1/pods", http.StatusForbidden},
		{http.MethodGet, "/api/v1/namespaces/default/secrets", http.StatusForbidden},
		{http.MethodDelete, podsPath, http.StatusForbidden},
	} {
		if got := a.call(c.method, c.path, nil, nil); got != c.want {
			t.Errorf("%s %s as the ServiceAccount: %d, want %d", c.method, c.path, got, c.want)
		}
	}
	a.Token = admin
}

// consistent checks what the API server does not: that the objects name each other.
func (a *api) consistent() {
	a.Helper()
	var d appsv1.Deployment
	a.must(http.MethodGet, kinds["Deployment"]+"/kvscout", nil, &d)
	spec := d.Spec.Template.Spec
	for _, path := range []string{
		kinds["ServiceAccount"] + "/" + spec.ServiceAccountName, kinds["ConfigMap"] + "/" + spec.Volumes[0].ConfigMap.Name,
	} {
		a.must(http.MethodGet, path, nil, nil)
	}
	a.restricted(d.Spec.Template)
	var s corev1.Service
	a.must(http.MethodGet, kinds["Service"]+"/kvscout", nil, &s)
	for k, v := range s.Spec.Selector {
		if d.Spec.Template.Labels[k] != v {
			a.Errorf("the Service selects %s=%s, the pods have %v", k, v, d.Spec.Template.Labels)
		}
	}
	port := spec.Containers[0].Ports[0]
	listen, admin := a.listen()
	if s.Spec.Ports[0].TargetPort.String() != port.Name || !strings.HasSuffix(listen, ":9470") || port.ContainerPort != 9470 {
		a.Errorf("the Service leads to %v, the pod has %v, the file says %q", s.Spec.Ports, port, listen)
	}
	operators, probes := spec.Containers[0].Ports[1], spec.Containers[0]
	if !strings.HasSuffix(admin, ":9471") || operators.ContainerPort != 9471 || d.Spec.Template.Annotations["prometheus.io/port"] != "9471" {
		a.Errorf("operators are at %v, the file says %q, Prometheus is told %v", operators, admin, d.Spec.Template.Annotations)
	}
	for want, probe := range map[string]*corev1.Probe{"/readyz": probes.ReadinessProbe, "/healthz": probes.LivenessProbe} {
		if probe.HTTPGet.Port.String() != operators.Name || probe.HTTPGet.Path != want {
			a.Errorf("%s is probed by %+v", want, probe.HTTPGet)
		}
	}
	for _, open := range s.Spec.Ports {
		if open.TargetPort.String() == operators.Name {
			a.Error("the Service leads callers to what is for operators")
		}
	}
}

// restricted checks that the pods may run under the strictest of Kubernetes' Pod Security Standards.
func (a *api) restricted(template corev1.PodTemplateSpec) {
	a.Helper()
	a.must(http.MethodPost, "/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "restricted", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, nil)
	base := "/api/v1/namespaces/restricted/"
	a.must(http.MethodPost, base+"serviceaccounts", &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: template.Spec.ServiceAccountName}}, nil)
	p := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	p.Name = "kvscout"
	a.must(http.MethodPost, base+"pods", p, nil)
}

// settings is the file of the ConfigMap.
func (a *api) settings() string {
	a.Helper()
	var c corev1.ConfigMap
	a.must(http.MethodGet, kinds["ConfigMap"]+"/kvscout", nil, &c)
	return c.Data["kvscout.yaml"]
}

// listen are the addresses in the file, of callers and of operators.
func (a *api) listen() (listen, admin string) {
	a.Helper()
	var file struct {
		Listen      string `json:"listen"`
		AdminListen string `json:"admin_listen"`
	}
	if err := yaml.Unmarshal([]byte(a.settings()), &file); err != nil {
		a.Fatal(err)
	}
	return file.Listen, file.AdminListen
}

// The pod of docs/kubernetes.md is what that page says: a worker of the shipped configuration's selector.
func TestDocsPod(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the page has no example")
	}
	doc, err := yaml.ToJSON([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	a := startAPI(t)
	a.must(http.MethodPost, podsPath+"?fieldValidation=Strict", doc, nil)
	a.running("vllm-0", "10.1.0.1", true)
	o := byPods(a.config(""))
	o.Selector = "kvscout.io/worker=true"
	r := discoverBy(t, o, nil, nil)
	r.waitIDs("10.1.0.1:8000")
	w := r.find("10.1.0.1:8000")
	if w.Role != discover.RoleDecode || w.Model != "Qwen/Qwen3-8B" || len(w.Sources) != 2 || w.Sources[1].Replay != "tcp://10.1.0.1:5568" {
		t.Errorf("the example makes %+v", w)
	}
}
