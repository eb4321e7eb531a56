//go:build kubernetes

package kubernetes

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API server is killed and comes back: what was known stays, the failure shows, and what changed meanwhile is found.
func TestAPIServerRestart(t *testing.T) {
	a := startAPI(t)
	a.create(pod("p1", stated()))
	a.running("p1", "10.1.0.1", true)
	r := discoverBy(t, byPods(a.config("")), nil, nil)
	r.waitIDs("10.1.0.1:8000")
	a.kill()
	r.wait("the failure", func() bool { return strings.Contains(r.status().Err, "refused") })
	if got := r.listed(); got != "10.1.0.1:8000" {
		t.Errorf("while the API server is down: %q", got)
	}
	a.start()
	a.create(pod("p2", stated()))
	a.running("p2", "10.1.0.2", true)
	a.remove("p1")
	r.waitIDs("10.1.0.2:8000")
	r.wait("no failure", func() bool { return r.status().Err == "" })
}

// The API server is not there at the start: the failure shows, nothing is named, and workers come when it does.
func TestAPIServerLate(t *testing.T) {
	a := startAPI(t)
	a.create(pod("p1", stated()))
	a.running("p1", "10.1.0.1", true)
	a.kill()
	r := discoverBy(t, byPods(a.config("")), nil, nil)
	r.wait("the failure", func() bool { return strings.Contains(r.status().Err, "list pods in namespace default") })
	a.start()
	r.waitIDs("10.1.0.1:8000")
}

// A watch whose revision is compacted away is answered with 410 Gone: everything is listed again, and what went and came
// meanwhile is found, without a failure.
func TestGone410(t *testing.T) {
	// Without its cache the API server serves watches from etcd, which it compacts every second.
	a := startAPI(t, "--watch-cache=false", "--etcd-compaction-interval=1s")
	for _, name := range []string{"p1", "p2"} {
		a.create(pod(name, stated()))
	}
	u, err := url.Parse(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, "127.0.0.1:0", u.Host)
	config := a.config("")
	config.Host = "https://" + p.address
	var gone atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return witness{next, &gone} })
	r := discoverBy(t, byPods(config), nil, nil)
	r.wait("the list", func() bool { return r.status().Reports > 0 })
	a.running("p1", "10.1.0.1", true) // a watch without an event would be given up for a list when it is cut
	r.waitIDs("10.1.0.1:8000")
	var list metav1.List
	a.must(http.MethodGet, podsPath, nil, &list)
	p.cut()
	a.remove("p1")
	a.running("p2", "10.1.0.2", true)
	for deadline := time.Now().Add(patience); a.call(http.MethodGet, podsPath+"?limit=1&resourceVersionMatch=Exact&resourceVersion="+list.ResourceVersion, nil, nil) != http.StatusGone; {
		if time.Now().After(deadline) {
			t.Fatal("the revision is not compacted")
		}
		a.churn(1)
		time.Sleep(100 * time.Millisecond)
	}
	p.mend(t)
	r.waitIDs("10.1.0.2:8000")
	r.wait("no failure", func() bool { return r.status().Err == "" })
	if gone.Load() == 0 {
		t.Error("no answer was 410 Gone: the test proved nothing")
	}
}

// witness counts answers that say 410, by status or within a watch's stream.
type witness struct {
	http.RoundTripper
	gone *atomic.Int64
}

func (w witness) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := w.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusGone {
		w.gone.Add(1)
	} else if req.URL.Query().Get("watch") != "" {
		res.Body = witnessBody{res.Body, w.gone}
	}
	return res, nil
}

func (w witness) WrappedRoundTripper() http.RoundTripper { return w.RoundTripper }

type witnessBody struct {
	io.ReadCloser
	gone *atomic.Int64
}

func (b witnessBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if bytes.Contains(p[:n], []byte("Expired")) {
		b.gone.Add(1)
	}
	return n, err
}

// A right that is missing gives an error that says which, from the start and later; what was known stays, and all goes on
// when the right is given.
func TestMissingRight(t *testing.T) {
	a := startAPI(t)
	a.create(pod("p1", stated()))
	a.running("p1", "10.1.0.1", true)
	u, err := url.Parse(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, "127.0.0.1:0", u.Host)
	config := a.config(a.token("watcher"))
	config.Host = "https://" + p.address
	r := discoverBy(t, byPods(config), nil, nil)
	forbidden := func() bool {
		return strings.Contains(r.status().Err, "the Role needs get, list and watch on pods") && strings.Contains(r.status().Err, "forbidden")
	}
	r.wait("the missing right", forbidden)
	if now := r.now(); r.listed() != "" || now.Reports != 0 {
		t.Errorf("without any right: %+v", now)
	}
	rbac := "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"
	a.must(http.MethodPost, rbac+"roles", &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "watcher"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}},
	}}, nil)
	grant := func() {
		t.Helper()
		a.must(http.MethodPost, rbac+"rolebindings", &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "watcher"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "watcher"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "watcher", Namespace: "default"}},
		}, nil)
	}
	grant()
	r.waitIDs("10.1.0.1:8000")
	r.wait("no failure", func() bool { return r.status().Err == "" })

	a.must(http.MethodDelete, rbac+"rolebindings/watcher", nil, nil)
	for deadline := time.Now().Add(patience); !strings.Contains(r.now().Err, "forbidden"); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the right that was taken does not show: %+v", r.now())
		}
		p.cut() // a watch that goes on is not judged again
		p.mend(t)
	}
	a.create(pod("p2", stated()))
	a.running("p2", "10.1.0.2", true)
	r.wait("no right", forbidden)
	if got := r.listed(); got != "10.1.0.1:8000" {
		t.Errorf("without the right: %q", got)
	}
	grant()
	r.waitIDs("10.1.0.1:8000 10.1.0.2:8000")
	r.wait("no failure", func() bool { return r.status().Err == "" })

	r.stop()
	for deadline := time.Now().Add(5 * time.Second); p.count() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are left behind", p.count())
		}
	}
}
