package main

import (
	"strings"
	"testing"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: c
clusters: [{name: k, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: secret}}]
contexts: [{name: c, context: {cluster: k, user: u}}]
`

// Selectors make discoverers, beside that of the file or the flags.
func TestKubernetesFlags(t *testing.T) {
	file := writeFile(t, "kubeconfig", kubeconfig)
	o, _, err := resolve("--kubeconfig", file, "--kubernetes-pods", "app=vllm", "--kubernetes-endpoint-slices", "kubernetes.io/service-name in (a,b)")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range o.discoverers() {
		names = append(names, d.Name())
	}
	if got := strings.Join(names, " "); got != "flags kubernetes-pods kubernetes-endpointslices" {
		t.Errorf("discoverers %s", got)
	}
	if o, _, err = resolve("--kubernetes-port", "8000"); err != nil || len(o.discoverers()) != 1 {
		t.Errorf("without a selector: %v, %v", o.discoverers(), err)
	}
}

// What is wrong stops the start, all at once, and names the flag.
func TestKubernetesFlags_Wrong(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	file := writeFile(t, "kubeconfig", kubeconfig)
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--kubernetes-pods", "app=vllm"}, []string{"no kubeconfig is given, and this process runs in no pod"}},
		{[]string{"--kubernetes-pods", "app=vllm", "--kubeconfig", file + "x"}, []string{"kubeconfig"}},
		{[]string{"--kubernetes-pods", "a=b=c", "--kubeconfig", file, "--kubernetes-endpoint-slices", "x=y", "--kubernetes-port", "99999"},
			[]string{"kubernetes-pods: ", `selector "a=b=c"`, "kubernetes-endpoint-slices: ", "99999"}},
		{[]string{"--kubernetes-pods", "app=vllm", "--kubeconfig", file, "--kubernetes-worker-id", "uid"}, []string{`id "uid" is not address or name`}},
		{[]string{"--kubernetes-pods", "app=vllm", "--kubeconfig", file, "--kubernetes-namespace", "a/b"}, []string{`namespace "a/b"`}},
	} {
		r := run(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, c.args...)...)
		if r.code != exitUsage {
			t.Errorf("%v exits with %d", c.args, r.code)
		}
		wants(t, r.err, c.want...)
		if strings.Contains(r.err, "secret") {
			t.Errorf("a secret is shown: %s", r.err)
		}
	}
}
