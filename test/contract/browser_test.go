//go:build contract

package contract

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// browser is a page in a headless browser that fetches what it is told.
type browser struct {
	origin  string // of the page
	jobs    chan job
	results chan result
	mu      sync.Mutex // held during a fetch: the page does one at a time
}

type job struct {
	exchange
	Base string `json:"base"` // URL of the server
}

type result struct {
	reply
	Error string `json:"error"` // that fetch threw
}

// open opens the page.
func open(t *testing.T) *browser {
	t.Helper()
	b := &browser{jobs: make(chan job), results: make(chan result)}
	over := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/page.html", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join("testdata", "page.html"))
	})
	mux.HandleFunc("/next", func(w http.ResponseWriter, r *http.Request) {
		select {
		case j := <-b.jobs:
			_ = json.NewEncoder(w).Encode(j)
		case <-over:
			w.WriteHeader(http.StatusGone)
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/result", func(_ http.ResponseWriter, r *http.Request) {
		var got result
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			got.Error = err.Error()
		}
		select {
		case b.results <- got:
		case <-over:
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	b.origin = s.URL
	stop := startBrowser(t, s.URL+"/page.html")
	t.Cleanup(func() { close(over); stop() })
	return b
}

// startBrowser runs a browser until stop is called, without a sandbox, since root has none, and without talk of its own.
func startBrowser(t *testing.T, page string) (stop func()) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(cmp.Or(os.Getenv("KVSCOUT_BROWSER"), "chromium"), "--headless=new", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--remote-debugging-port=0", "--user-data-dir="+filepath.Join(dir, "user"), page)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its children end with it
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: `make test-contract` installs one, or set KVSCOUT_BROWSER to a Chromium", err)
	}
	return func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("the browser wrote:\n%s", text[:min(len(text), 8<<10)])
		}
	}
}

// fetch makes the page fetch something from base.
func (b *browser) fetch(t *testing.T, base string, e exchange) result {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	limit := time.After(patience)
	select {
	case b.jobs <- job{exchange: e, Base: base}:
	case <-limit:
		t.Fatal("the browser does not load the page")
	}
	select {
	case got := <-b.results:
		return got
	case <-limit:
		t.Fatalf("the browser does not answer for %s", e.Path)
		return result{}
	}
}

func (b *browser) from(base string) web {
	return func(t *testing.T, e exchange) reply {
		t.Helper()
		got := b.fetch(t, base, e)
		if got.Error != "" {
			t.Fatalf("fetch of %s: %s", e.Path, got.Error)
		}
		for name, values := range got.Header { // as net/http names them
			delete(got.Header, name)
			got.Header[http.CanonicalHeaderKey(name)] = values
		}
		return got.reply
	}
}

var browserForms = map[string]form{
	"connect json": {json: true}, "connect proto": {}, "grpc-web proto": {grpc: true},
}

// needHTTP2 is of streams of both directions, which no browser can fetch over HTTP/1.1: the server says so.
func needHTTP2(send web) func(*testing.T, protoreflect.MethodDescriptor) bool {
	return func(t *testing.T, m protoreflect.MethodDescriptor) bool {
		if !m.IsStreamingClient() {
			return false
		}
		got := send(t, exchange{Method: "POST", Path: "/" + path(m), Header: map[string]string{"Content-Type": "application/connect+json"}})
		if got.Status != http.StatusHTTPVersionNotSupported {
			t.Errorf("%s over HTTP/1.1: HTTP %d", m.FullName(), got.Status)
		}
		return true
	}
}

// A page of an origin that may call does so in each protocol that fetch can carry.
func TestBrowser(t *testing.T) {
	page := open(t)
	for name, f := range browserForms {
		t.Run(name, func(t *testing.T) {
			f.send = page.from("http://" + serve(t, "--cors-origin", page.origin))
			walk(t, f, needHTTP2(f.send))
		})
	}
}

// A page of any other origin gets nothing.
func TestBrowser_OtherOrigins(t *testing.T) {
	page := open(t)
	for name, args := range map[string][]string{"none is named": nil, "another is named": {"--cors-origin", "https://ops.example.com"}} {
		got := page.fetch(t, "http://"+serve(t, args...), exchange{
			Method: "POST", Path: "/kvscout.v1.IndexService/GetStats", Body: []byte("{}"), Header: map[string]string{"Content-Type": "application/json"},
		})
		if got.Error == "" || got.Status != 0 {
			t.Errorf("%s: HTTP %d, %q", name, got.Status, got.Body)
		}
	}
}
