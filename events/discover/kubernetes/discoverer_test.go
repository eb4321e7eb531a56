package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kvscout/kvscout/events/discover"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNew_Faults(t *testing.T) {
	good := Options{Config: &rest.Config{}, Namespace: "default", Resource: Pods, Selector: "app=x"}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"selector is empty": func(o *Options) { o.Selector = "" },
		`selector "a=b=c"`:  func(o *Options) { o.Selector = "a=b=c" },
		`namespace "A_B"`:   func(o *Options) { o.Namespace = "A_B" },
		`namespace ""`:      func(o *Options) { o.Namespace = "" },
		"no API server":     func(o *Options) { o.Config = nil },
		`resource "nodes"`:  func(o *Options) { o.Resource = "nodes" },
		"port":              func(o *Options) { o.Port = "0" },
		`id "uid"`:          func(o *Options) { o.ID = "uid" },
	} {
		o := good
		change(&o)
		if _, err := New(o); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, _, err := Config(""); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "runs in no pod") {
		t.Errorf("outside of a pod: %v", err)
	}
	if _, _, err := Config(filepath.Join(t.TempDir(), "none")); !errors.Is(err, ErrOptions) {
		t.Errorf("a missing kubeconfig: %v", err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(`apiVersion: v1
kind: Config
current-context: c
clusters: [{name: k, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: u, user: {token: secret}}]
contexts: [{name: c, context: {cluster: k, user: u, namespace: engines}}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	config, namespace, err := Config(file)
	if err != nil || namespace != "engines" || config.Host != "https://127.0.0.1:6443" {
		t.Errorf("%v, namespace %q", err, namespace)
	}
}

// told is what a Reporter hears first.
type told chan any

func (c told) Workers(list []discover.Worker) { c.tell(list) }
func (c told) Failed(err error)               { c.tell(err) }

func (c told) tell(v any) {
	select {
	case c <- v:
	default:
	}
}

// first runs a Discoverer of pods against a server and returns what it says first.
func first(t *testing.T, handler http.HandlerFunc) any {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	d, err := New(Options{Config: &rest.Config{Host: server.URL}, Namespace: "default", Resource: Pods, Selector: "app=x"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c, done := make(told, 1), make(chan error, 1)
	go func() { done <- d.Run(ctx, c) }() // ended by cancel, waited for below
	defer func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	}()
	return <-c
}

// Rule 17: a list of more objects than may be is given up on, not kept.
func TestRule17_List(t *testing.T) {
	var asked atomic.Int64
	got := first(t, func(w http.ResponseWriter, r *http.Request) {
		page := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1", Continue: "more"}}
		n := asked.Add(1)
		for i := range pageSize {
			page.Items = append(page.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d-%d", n, i)}})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(page)
	})
	if err, ok := got.(error); !ok || !errors.Is(err, discover.ErrTooMany) {
		t.Errorf("said %.200v", got)
	}
	if n := asked.Load(); n < maxObjects/pageSize || n > 2*maxObjects/pageSize {
		t.Errorf("%d pages were read", n)
	}
}

// Rule 17: an answer without an end is cut.
func TestRule17_Page(t *testing.T) {
	var sent atomic.Int64
	got := first(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		n, err := io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[`+strings.Repeat(" ", 1<<20))
		for blank := []byte(strings.Repeat(" ", 1<<20)); err == nil && sent.Load() < 4*maxPage; n, err = w.Write(blank) {
			sent.Add(int64(n))
		}
	})
	if err, ok := got.(error); !ok || !strings.Contains(err.Error(), errPage.Error()) {
		t.Errorf("said %.200v", got)
	}
	if n := sent.Load(); n > 2*maxPage {
		t.Errorf("%d bytes were read", n)
	}
}
