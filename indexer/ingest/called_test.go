package ingest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
)

// port is the serving port of a vLLM, whose answers change: a body by path, "" fails.
type port struct {
	*httptest.Server
	mu     sync.Mutex // guards below
	bodies map[string]string
	asked  int // questions for event sources
}

func servePort(t *testing.T) *port {
	t.Helper()
	p := &port{bodies: map[string]string{
		"/v1/models": `{"data": [{"id": "m", "parent": null}]}`, "/version": `{"version": "0.32.0"}`, "/health": "ok",
	}}
	p.tell(5557, "tcp://*:6557", 1)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if r.URL.Path == "/kv_event_sources" {
			p.asked++
		}
		if p.bodies[r.URL.Path] == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, p.bodies[r.URL.Path])
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *port) set(path, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bodies[path] = body
}

func (p *port) questions() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// tell lets it tell of ranks that publish at port and above it. Rank 0 has a replay endpoint, if one is given.
func (p *port) tell(port int, replay string, ranks int) {
	var list []string
	for r := range ranks {
		text := "null"
		if r == 0 && replay != "" {
			text = fmt.Sprintf("%q", replay)
		}
		list = append(list, fmt.Sprintf(`{"data_parallel_rank": %d, "endpoint": "tcp://*:%d", "replay_endpoint": %s}`, r, port+r, text))
	}
	p.set("/kv_event_sources", "["+strings.Join(list, ",")+"]")
}

// calling runs the discovery of called workers for the rest of the test.
func (r *rig) calling(t *testing.T) (asker *discover.Asker) {
	t.Helper()
	asker = discover.NewAsker(discover.AskerOptions{
		Refresh: 10 * time.Millisecond, Retry: 10 * time.Millisecond, Health: 5 * time.Millisecond, Grace: 50 * time.Millisecond,
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // ended by stop, waited for on done
		defer close(done)
		_ = discover.Run(ctx, discover.Options{
			Discoverers: []discover.Discoverer{r.fleet.Called()}, Asker: asker, Apply: r.fleet.Refreshed, Health: r.fleet.CalledHealth,
		})
	}()
	t.Cleanup(func() {
		stop()
		<-done
		asker.Close()
	})
	return asker
}

// call registers a worker as RegisterWorker does with an address alone.
func (r *rig) call(t *testing.T, a *discover.Asker, id, url string, edit ...func(*discover.Worker)) {
	t.Helper()
	stated := discover.Worker{ID: id, URL: url}
	for _, e := range edit {
		e(&stated)
	}
	found, err := a.Describe(t.Context(), stated)
	if err != nil {
		t.Fatal(err)
	}
	w, err := FromDiscovery(found)
	if err != nil {
		t.Fatal(err)
	}
	w.Labels = map[string]string{"zone": "a"}
	if _, err := r.fleet.RegisterAsked(w, stated); err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) { // a poll with a deadline
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// endpoints are where a worker's ranks are listened to; nil without the worker.
func (r *rig) endpoints(id string) (list []string) {
	w, _ := r.fleet.Worker(id)
	for _, s := range w.Sources {
		list = append(list, strings.TrimPrefix(s.Events, "tcp://127.0.0.1:")+"/"+strings.TrimPrefix(s.Replay, "tcp://127.0.0.1:"))
	}
	return list
}

func (r *rig) at(t *testing.T, id string, want ...string) {
	t.Helper()
	until(t, fmt.Sprint(id, " at ", want), func() bool { return slices.Equal(r.endpoints(id), want) })
}

// A worker that a call named by its address alone is asked again: what it tells otherwise is taken over rank by rank, a
// failed question or a null changes nothing, and labels stay.
func TestCalled_Refreshed(t *testing.T) {
	p := servePort(t)
	r := newRig(t, Options{})
	a := r.calling(t)
	r.call(t, a, "w", p.URL, func(w *discover.Worker) { w.Role = discover.RoleDecode })
	r.at(t, "w", "5557/6557")
	p.tell(5557, "tcp://*:6557", 2) // a rank more
	r.at(t, "w", "5557/6557", "5558/")
	kept := r.fleet.workers["w"].sources[0]
	p.set("/v1/models", `{"data": [{"id": "m", "parent": null}, {"id": "lora", "parent": "m"}]}`)
	until(t, "the adapter", func() bool { w, _ := r.fleet.Worker("w"); return slices.Equal(w.Adapters, []string{"lora"}) })

	still := func(what string) {
		t.Helper()
		n := p.questions()
		until(t, what, func() bool { return p.questions() > n+2 })
		if got := r.endpoints("w"); !slices.Equal(got, []string{"5557/6557", "5558/"}) {
			t.Errorf("%s: %v", what, got)
		}
	}
	p.set("/kv_event_sources", "")
	still("a question that fails")
	until(t, "the failures counted", func() bool { return r.fleet.Discovery().AskFailed > 2 })
	p.set("/kv_event_sources", "[]")
	p.set("/v1/models", `{"data": null}`)
	still("an answer that tells nothing")
	p.tell(5557, "", 2)
	still("a null for the replay endpoint")
	w, _ := r.fleet.Worker("w")
	if w.Labels["zone"] != "a" || w.Role != RoleDecode || w.Model != "m" || !slices.Equal(w.Adapters, []string{"lora"}) {
		t.Errorf("%+v", w)
	}
	r.fleet.mu.Lock()
	same := r.fleet.workers["w"].sources[0] == kept
	r.fleet.mu.Unlock()
	if !same {
		t.Error("rank 0 began anew, though it is where it was")
	}
	p.tell(7000, "tcp://*:7100", 1)
	r.at(t, "w", "7000/7100")
}

// A worker that left is asked no more, whatever answer is under way; so is one that was registered otherwise, and a rank
// that a call took out stays out.
func TestCalled_Forgotten(t *testing.T) {
	p, q := servePort(t), servePort(t)
	r := newRig(t, Options{})
	a := r.calling(t)
	r.call(t, a, "gone", p.URL)
	r.call(t, a, "stays", q.URL)
	q.tell(5557, "tcp://*:6557", 2)
	r.at(t, "stays", "5557/6557", "5558/")
	one := 1
	r.fleet.Deregister("stays", &one)
	q.tell(5600, "tcp://*:6600", 3)
	r.at(t, "stays", "5600/6600", "5602/")
	stated := r.fleet.stated()
	answer := stated[slices.IndexFunc(stated, func(w discover.Worker) bool { return w.ID == "gone" })]
	answer.Sources, answer.Model = answer.Known.Sources, answer.Known.Model
	r.call(t, a, "gone", p.URL, func(w *discover.Worker) { w.Model = "other" })
	r.fleet.Refreshed(discover.Update{Workers: []discover.Worker{answer}})
	if w, _ := r.fleet.Worker("gone"); w.Model != "other" {
		t.Errorf("the answer to an earlier call made it %+v", w)
	}
	r.fleet.Deregister("gone", nil)
	r.fleet.Refreshed(discover.Update{Workers: []discover.Worker{answer}})
	if _, ok := r.fleet.Worker("gone"); ok {
		t.Error("an answer that was under way brought the worker back")
	}
	ends := func(id string, at *port) {
		t.Helper()
		last := at.questions()
		for quiet := 0; quiet < 5; quiet++ { // as many refreshes of the other as it would have had
			n := q.questions()
			until(t, "time to pass", func() bool { return q.questions() > n })
			if now := at.questions(); now != last {
				last, quiet = now, 0
			}
		}
	}
	ends("gone", p)
	r.call(t, a, "gone", p.URL)
	until(t, "questions again", func() bool { return p.questions() > 3 })
	plain := worker("gone", "m", 1)
	if _, err := r.fleet.Register(plain); err != nil {
		t.Fatal(err)
	}
	ends("gone", p)
	if w, _ := r.fleet.Worker("gone"); w.Sources[0].Events != "" {
		t.Errorf("registered as a pushed one it is %+v", w)
	}
}

// Rule 12: health_every looks at called workers too; a file's word about one of that id does not count.
func TestRule12_CalledIll(t *testing.T) {
	p := servePort(t)
	r := newRig(t, Options{})
	r.call(t, r.calling(t), "w", p.URL)
	ill := func() bool {
		f := r.index.Ledgers()[0].Freshness()
		return f.State == events.StateStale && strings.Contains(f.Why, "status 503")
	}
	n := p.questions()
	until(t, "a first look", func() bool { return p.questions() > n+2 })
	p.set("/health", "")
	until(t, "ill", ill)
	r.fleet.Health("w", nil)
	if !ill() {
		t.Error("another discovery made it well")
	}
	p.set("/health", "ok")
	until(t, "well", func() bool { return !ill() })
}

// After a restart a called worker is there before it answers, a question that fails or tells a null leaves it as it was,
// and it is asked again.
func TestCalled_Restored(t *testing.T) {
	p := servePort(t)
	r := newRig(t, Options{})
	r.call(t, r.calling(t), "w", p.URL, func(w *discover.Worker) { w.Sources = []events.Source{{SpeculativeEAGLE: true}} })
	one := 1
	p.tell(5557, "tcp://*:6557", 3)
	r.at(t, "w", "5557/6557", "5558/", "5559/")
	r.fleet.Deregister("w", &one)
	path := filepath.Join(t.TempDir(), "s")
	k, _ := r.keeper(path)
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	before, _ := r.fleet.Worker("w")

	p.tell(5557, "", 3)
	n, got := restarted(t, path)
	if after, _ := n.fleet.Worker("w"); got.Restored.Workers != 1 || !cmp.Equal(before, after) {
		t.Errorf("restored %+v: %s", got.Restored, cmp.Diff(before, after))
	}
	asked := p.questions()
	n.calling(t)
	until(t, "questions", func() bool { return p.questions() > asked+2 })
	if after, _ := n.fleet.Worker("w"); !cmp.Equal(before, after) {
		t.Errorf("a null changed it: %s", cmp.Diff(before, after))
	}
	p.tell(8000, "tcp://*:8100", 3)
	n.at(t, "w", "8000/8100", "8002/")
	if w, _ := n.fleet.Worker("w"); !w.Sources[0].SpeculativeEAGLE || w.Labels["zone"] != "a" {
		t.Errorf("what was stated is %+v", w)
	}
}
