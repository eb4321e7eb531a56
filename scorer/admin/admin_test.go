package admin_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/scorer/admin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs s on l until the test ends.
func serve(t *testing.T, s *admin.Server, l net.Listener) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }() // ended by cancel, waited for below
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func start(t *testing.T, s *admin.Server) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, s, l)
	return "http://" + l.Addr().String()
}

// get asks on a connection of its own.
func get(t *testing.T, url string, edit ...func(*http.Request)) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range edit {
		e(req)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestServer_Pages(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "m 1\n") })
	url := start(t, admin.New(admin.Options{Metrics: metrics, Version: "v1.2.3"}))
	for path, want := range map[string]string{
		"/":                              "/readyz",
		"/healthz":                       "ok\n",
		"/version":                       `"version":"v1.2.3"`,
		"/metrics":                       "m 1\n",
		"/debug/pprof/":                  "goroutine",
		"/debug/pprof/goroutine?debug=1": "goroutine profile",
		"/debug/pprof/mutex?debug=1":     "sampling period=0",
	} {
		code, body := get(t, url+path)
		if code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
}

// Profiles that would outlast the bound are refused at once, and nothing tells the command line.
func TestServer_Refuses(t *testing.T) {
	url := start(t, admin.New(admin.Options{}))
	for path, want := range map[string]int{
		"/debug/pprof/profile?seconds=75": http.StatusBadRequest,
		"/debug/pprof/trace?seconds=75":   http.StatusBadRequest,
		"/debug/pprof/trace?seconds=NaN":  http.StatusBadRequest,
		"/debug/pprof/heap?seconds=61":    http.StatusBadRequest,
		"/debug/pprof/cmdline":            http.StatusNotFound,
		"/metrics":                        http.StatusNotFound,
		"/nothing":                        http.StatusNotFound,
	} {
		if code, body := get(t, url+path); code != want {
			t.Errorf("%s: %d %.100q, want %d", path, code, body, want)
		}
	}
	resp, err := http.Post(url+"/healthz", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}

func TestServer_Ready(t *testing.T) {
	s := admin.New(admin.Options{})
	url := start(t, s)
	read := func() (int, admin.Status) {
		var got admin.Status
		code, body := get(t, url+"/readyz")
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%v in %q", err, body)
		}
		return code, got
	}
	if code, got := read(); code != http.StatusServiceUnavailable || got.Ready || got.State != "starting" {
		t.Errorf("before it is told: %d %+v", code, got)
	}
	s.SetReady(func() admin.Status { return admin.Status{State: "starting", Waiting: []string{"w0/0"}} })
	if code, got := read(); code != http.StatusServiceUnavailable || len(got.Waiting) != 1 || got.Waiting[0] != "w0/0" {
		t.Errorf("waiting: %d %+v", code, got)
	}
	s.SetReady(func() admin.Status {
		return admin.Status{Ready: true, State: "degraded", Degraded: []string{"w1/0"}}
	})
	if code, got := read(); code != http.StatusOK || !got.Ready || got.Degraded[0] != "w1/0" {
		t.Errorf("degraded: %d %+v", code, got)
	}
}

// A name that somebody points at 127.0.0.1 reads nothing (invariant 4).
func TestServer_RefusesNamesOnLoopback(t *testing.T) {
	url := start(t, admin.New(admin.Options{}))
	for host, want := range map[string]int{
		"evil.example:9471": http.StatusMisdirectedRequest,
		"localhost":         http.StatusOK,
		"localhost:1":       http.StatusOK,
		"127.0.0.1:1":       http.StatusOK,
		"[::1]:1":           http.StatusOK,
		"[::1]":             http.StatusOK,
	} {
		if code, _ := get(t, url+"/healthz", func(r *http.Request) { r.Host = host }); code != want {
			t.Errorf("host %q: %d, want %d", host, code, want)
		}
	}
}

// Rule 17: what is over the bound is told so at once, and served again when there is room.
func TestServer_BoundsRequests(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-leave })
	url := start(t, admin.New(admin.Options{Metrics: slow}))
	ended := make(chan struct{})
	for range admin.MaxRequests {
		go func() { // ended by leave, waited for on ended
			defer func() { ended <- struct{}{} }()
			get(t, url+"/metrics")
		}()
	}
	for range admin.MaxRequests {
		<-entered
	}
	if code, _ := get(t, url+"/healthz"); code != http.StatusServiceUnavailable {
		t.Errorf("over the bound: %d", code)
	}
	close(leave)
	for range admin.MaxRequests {
		<-ended
	}
	if code, _ := get(t, url+"/healthz"); code != http.StatusOK {
		t.Errorf("afterwards: %d", code)
	}
}

func TestServer_Unix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if !admin.Loopback(l.Addr()) {
		t.Error("a socket is no loopback")
	}
	serve(t, admin.New(admin.Options{}), l)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("http://any.name/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("healthz: %d", resp.StatusCode)
	}
}

// A shutdown does not wait for a profile under way.
func TestServer_StopsDuringProfile(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	entered, done := make(chan struct{}), make(chan error, 1)
	slow := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { close(entered); <-r.Context().Done() })
	go func() { done <- admin.New(admin.Options{Metrics: slow}).Serve(ctx, l) }() // ended by cancel, waited for on done
	asked := make(chan struct{})
	go func() { // ended by the shutdown, waited for on asked
		defer close(asked)
		if resp, err := http.Get("http://" + l.Addr().String() + "/metrics"); err == nil {
			resp.Body.Close()
		}
	}()
	<-entered
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-asked
	http.DefaultClient.CloseIdleConnections()
}
