package discover

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pages is an engine's serving port: a body for each path. A body of digits is a status.
type pages struct {
	mu     sync.Mutex // guards all below
	bodies map[string]string
	hits   map[string]int
}

func (p *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hits[r.URL.Path]++
	body, ok := p.bodies[r.URL.Path]
	switch {
	case !ok:
		http.NotFound(w, r)
	case body == "500":
		http.Error(w, "engine is dead", http.StatusInternalServerError)
	case strings.HasPrefix(body, "http://"):
		http.Redirect(w, r, body, http.StatusFound)
	default:
		_, _ = io.WriteString(w, body)
	}
}

func (p *pages) set(path, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bodies[path] = body
}

func (p *pages) hit(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits[path]
}

// serve starts a serving port.
func serve(t *testing.T, bodies map[string]string) (p *pages, url string) {
	t.Helper()
	p = &pages{bodies: bodies, hits: make(map[string]int)}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return p, s.URL
}

func newAsker(t *testing.T, o AskerOptions) *Asker {
	t.Helper()
	if o.Refresh == 0 {
		o.Refresh, o.Retry = 20*time.Millisecond, 20*time.Millisecond
	}
	a := NewAsker(o)
	t.Cleanup(a.Close)
	return a
}

// ask asks once.
func ask(t *testing.T, url string, engine events.Engine) (*Worker, error) {
	t.Helper()
	base, host, err := parseBase(url)
	if err != nil {
		t.Fatal(err)
	}
	return newAsker(t, AskerOptions{}).ask(t.Context(), base, host, engine)
}

// said is a Discoverer whose reports come from the test.
type said struct {
	name    string
	reports chan any // []Worker or error
}

func says(name string) *said { return &said{name: name, reports: make(chan any)} }

func (s *said) Name() string { return s.name }

func (s *said) Run(ctx context.Context, r Reporter) error {
	for {
		select {
		case v := <-s.reports:
			switch v := v.(type) {
			case []Worker:
				r.Workers(v)
			case error:
				r.Failed(v)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// rig is a running discovery.
type rig struct {
	*testing.T
	mu     sync.Mutex // guards all below
	change *sync.Cond
	last   Update
	told   int // updates
	ill    map[string]error
}

func run(t *testing.T, o Options) *rig {
	t.Helper()
	r := &rig{T: t, ill: make(map[string]error)}
	r.change = sync.NewCond(&r.mu)
	o.Apply = func(u Update) { r.locked(func() { r.last = u; r.told++ }) }
	o.Health = func(w string, err error) { r.locked(func() { r.ill[w] = err }) }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }() // ended by cancel, waited for in the cleanup
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
	return r
}

func (r *rig) locked(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	r.change.Broadcast()
}

// wait blocks until done, called under the lock, reports true.
func (r *rig) wait(what string, done func() bool) {
	r.Helper()
	late := false
	timer := time.AfterFunc(20*time.Second, func() { r.locked(func() { late = true }) })
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !done() {
		if late {
			r.Fatalf("waited in vain for %s: %+v, ill %v", what, r.last, r.ill)
		}
		r.change.Wait()
	}
}

// now is the last update.
func (r *rig) now() (u Update) {
	r.locked(func() { u = r.last })
	return u
}

// find finds a worker of the last update.
func (r *rig) find(id string) (w Worker, ok bool) {
	r.locked(func() { w, ok = r.worker(id) })
	return w, ok
}

// worker finds a worker of the last update. The caller holds the lock.
func (r *rig) worker(id string) (Worker, bool) {
	for _, w := range r.last.Workers {
		if w.ID == id {
			return w, true
		}
	}
	return Worker{}, false
}
