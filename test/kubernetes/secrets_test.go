//go:build kubernetes

package kubernetes

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvscout/kvscout/test/pki"
)

// With the Secrets that docs/kubernetes.md makes, and the lines of the ConfigMap that wait for them, callers need TLS and a
// token. The test does what the kubelet does: it mounts what the Deployment names.
func TestSecrets(t *testing.T) {
	a := startAPI(t)
	a.apply()
	const token = "gateway-token-0123456789"
	ca := pki.New(t, "ca")
	cert, key := ca.Sign(pki.Leaf{CommonName: "kvscout"})
	secrets := "/api/v1/namespaces/default/secrets"
	for _, s := range []corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Name: "kvscout-tls"}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": read(t, cert), "tls.key": read(t, key)}},
		{ObjectMeta: metav1.ObjectMeta{Name: "kvscout-callers"}, Data: map[string][]byte{"callers": []byte("score gateway token:" + token + "\n")}},
	} {
		a.must(http.MethodPost, secrets, &s, nil)
	}
	root := t.TempDir()
	var d appsv1.Deployment
	a.must(http.MethodGet, kinds["Deployment"]+"/kvscout", nil, &d)
	spec := d.Spec.Template.Spec
	mounted := 0
	for _, v := range spec.Volumes {
		if v.Secret == nil {
			continue
		}
		var s corev1.Secret
		a.must(http.MethodGet, secrets+"/"+v.Secret.SecretName, nil, &s)
		for _, m := range spec.Containers[0].VolumeMounts {
			if m.Name != v.Name {
				continue
			}
			for name, content := range s.Data {
				mounted++
				write(t, filepath.Join(root, m.MountPath, name), content)
			}
		}
	}
	if mounted != 3 {
		t.Errorf("%d files are mounted", mounted)
	}
	settings := a.settings()
	for _, line := range []string{"tls_cert: ", "tls_key: ", "callers: "} {
		if !strings.Contains(settings, "\n#"+line+"/run/kvscout/") {
			t.Fatalf("no line for %sin\n%s", line, settings)
		}
		settings = strings.Replace(settings, "\n#"+line, "\n"+line+root, 1)
	}
	k := startKvscoutBy(t, a, settings)
	file := filepath.Join(root, "token")
	write(t, file, []byte(token))
	k.as = []string{"--ca", ca.File, "--token-file", file}
	if out := k.run("stats"); !strings.Contains(out, "file of callers: read 1 times") || !strings.HasPrefix(k.address, "https://") {
		t.Errorf("at %s: %q\n%s", k.address, out, k.logged())
	}
	k.as = []string{"--ca", ca.File}
	if out := k.run("stats"); out != "" {
		t.Errorf("without a token: %s", out)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
