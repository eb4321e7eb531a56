package ingest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/jetstream"
	"github.com/kvscout/kvscout/events/jetstream/embedded"
	"github.com/kvscout/kvscout/events/simulate"
	"github.com/kvscout/kvscout/indexer"
)

var logOptions = jetstream.Options{Heartbeat: 50 * time.Millisecond, Lease: time.Second, StaleAfter: 5 * time.Second, MaxBytes: 64 << 20}

// logServer is an embedded server for the rest of the test.
func logServer(t *testing.T) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func openLog(t *testing.T, s *embedded.Server) *jetstream.Log {
	t.Helper()
	o := logOptions
	o.Server = s
	l, err := jetstream.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// ingester is a fleet that shares what it hears.
func newIngester(t *testing.T, s *embedded.Server) *rig {
	t.Helper()
	p := openLog(t, s).NewPublisher()
	r := newRig(t, Options{Log: p})
	t.Cleanup(func() {
		r.fleet.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		p.Close(ctx)
	})
	return r
}

// replica is a fleet that reads the log, until stop is called or the test ends.
type replica struct {
	*rig
	follower *jetstream.Follower
	stop     func()
}

func newReplica(t *testing.T, s *embedded.Server) *replica {
	t.Helper()
	r := &replica{rig: newRig(t, Options{})}
	r.run(s, nil)
	return r
}

// run reads the log, from a cursor if one is given.
func (r *replica) run(s *embedded.Server, from *jetstream.Cursor) {
	r.Helper()
	r.attach(s)
	if from != nil {
		if err := r.follower.StartFrom(*from); err != nil {
			r.Fatal(err)
		}
	}
	r.start()
}

// attach prepares to read the log of a server, use that log.
func (r *replica) attach(s *embedded.Server) { r.use(openLog(r.T, s)) }

func (r *replica) use(l *jetstream.Log) {
	r.follower = l.Follow(r.fleet.Follow())
	r.fleet.Follow().Attach(r.follower)
}

// start reads the log.
func (r *replica) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.fleet.Follow().Run(ctx) }() // ends with ctx; waited for in stop
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			r.Errorf("Run: %v", err)
		}
	}
	r.Cleanup(r.stop)
}

// answer is what one source's answer to a prompt is compared by.
type answer struct {
	Source         string
	Held, Reusable int
	Bound          indexer.BoundKind
	State          events.State
}

// answers is what the rig answers to prompts.
func (r *rig) answers(prompts []simulate.Request) map[string][]answer {
	r.Helper()
	out := make(map[string][]answer)
	for i, p := range prompts {
		matches, err := r.index.Lookup(context.Background(), indexer.Query{
			Model: "m", Tokens: p.Tokens, Namespace: indexer.Namespace{Adapter: p.Adapter, Salt: p.CacheSalt},
		})
		if err != nil {
			r.Fatal(err)
		}
		for _, m := range matches {
			key := fmt.Sprint(i, " of ", m.Source.ID())
			out[key] = append(out[key], answer{m.Source.ID(), m.Held, m.Reusable, m.Bound.Kind, m.Freshness.State})
		}
	}
	return out
}

// settled says that every source of the rig has told something and owes nothing, so that its answers are worth comparing.
func (r *rig) settled() bool {
	list := r.index.Ledgers()
	return len(list) > 0 && !slices.ContainsFunc(list, func(l *indexer.Ledger) bool {
		f := l.Freshness()
		return !settled(f.State) || !f.HasSequence
	})
}

// agree waits until the rig answers as the other one does, which has settled.
func (r *rig) agree(name string, with *rig, prompts []simulate.Request) {
	r.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		ready := with.settled() // before: what it knows then is in its answers
		want, got := with.answers(prompts), r.answers(prompts)
		if ready && reflect.DeepEqual(want, got) { // a diff takes long
			return
		}
		if time.Now().After(deadline) {
			r.Fatalf("%s answers otherwise (-want +got):\n%.3000s", name, cmp.Diff(want, got))
		}
		time.Sleep(20 * time.Millisecond) // a poll with a deadline
	}
}

// fleetOf starts engines of mixed forms behind real ZMQ.
func fleetOf(t *testing.T, n int) ([]*simulate.Engine, []Worker) {
	t.Helper()
	var engines []*simulate.Engine
	var workers []Worker
	forms := simulate.Forms()
	for i := range n {
		id := fmt.Sprintf("w%d", i)
		e, err := simulate.New(simulate.Config{
			Worker: id, Form: forms[i%len(forms)], Model: "m", BlockSize: 4, Blocks: 300, Seed: uint64(i),
			Events: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0",
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		engines = append(engines, e)
		workers = append(workers, Worker{ID: id, Model: "m", Role: RoleBoth, Labels: map[string]string{"n": id}, Fingerprint: "f", Sources: []events.Source{e.Source()}})
	}
	return engines, workers
}

// Three replicas behind two ingesters of the same engines: one is killed and starts from the log's beginning, one is
// stopped in the middle and goes on from its cursor. All answer as an index does that listens to the engines itself, and
// what they answer is what the engines then reuse.
func TestReplicas_AnswerIdentically(t *testing.T) {
	server := logServer(t)
	engines, workers := fleetOf(t, 4)
	direct := newRig(t, Options{})
	for _, r := range []*rig{direct, newIngester(t, server), newIngester(t, server)} {
		for _, w := range workers {
			r.register(w)
		}
	}
	one, two, three := newReplica(t, server), newReplica(t, server), newReplica(t, server)
	traffic := simulate.NewTraffic(1, simulate.TrafficConfig{MaxTokens: 200})
	var prompts []simulate.Request
	serve := func(n int) {
		for range n {
			p := traffic.Next()
			prompts = append(prompts, p)
			if _, err := engines[len(prompts)%len(engines)].Serve(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	serve(60)
	three.agree("the third replica", direct, prompts)
	var at jetstream.Cursor
	three.follower.Pause(func(c jetstream.Cursor) { at = c })
	two.stop() // killed: what it held is lost
	two.fleet.Close()
	three.stop() // stopped: what it holds is kept
	serve(60)
	if err := engines[0].Restart(); err != nil {
		t.Fatal(err)
	}
	if err := engines[2].Reset(); err != nil {
		t.Fatal(err)
	}
	serve(60)
	two = newReplica(t, server)
	var last jetstream.Cursor
	three.follower.Pause(func(c jetstream.Cursor) { last = c })
	if last.Sequence < at.Sequence {
		t.Fatalf("the cursor fell from %d to %d", at.Sequence, last.Sequence)
	}
	three.run(server, &last)
	serve(20)
	for name, r := range map[string]*rig{"one": one.rig, "two": two.rig, "three": three.rig} {
		r.agree("replica "+name, direct, prompts)
		if got, want := len(r.fleet.Workers()), len(workers); got != want {
			t.Errorf("replica %s knows %d workers, want %d", name, got, want)
		}
		if w, _ := r.fleet.Worker("w1"); w.Role != RoleBoth || w.Labels["n"] != "w1" || w.Fingerprint != "f" {
			t.Errorf("replica %s knows worker w1 as %+v", name, w)
		}
	}
	for i := range 12 {
		p, engine := prompts[len(prompts)-1-i], engines[i%len(engines)]
		key := engine.Source().ID()
		want := make(map[string]int)
		for name, r := range map[string]*rig{"one": one.rig, "two": two.rig, "three": three.rig} {
			for _, a := range r.answers([]simulate.Request{p})["0 of "+key] {
				want[name] = a.Reusable
			}
		}
		out, err := engine.Serve(p)
		if err != nil {
			t.Fatal(err)
		}
		for name, reusable := range want {
			if reusable != out.CachedTokens {
				t.Errorf("replica %s says that %s reuses %d tokens, and it was %d", name, key, reusable, out.CachedTokens)
			}
		}
		for name, r := range map[string]*rig{"one": one.rig, "two": two.rig, "three": three.rig} {
			r.agree("replica "+name, direct, prompts)
		}
	}
}

// A worker that a process listens to itself is not taken from the log, nor shared twice; a push to a followed one is
// refused.
func TestFollow_LocalWorkersFirst(t *testing.T) {
	server := logServer(t)
	a := newIngester(t, server)
	a.register(worker("shared", "m", 1))
	a.register(worker("theirs", "m", 1))
	p := openLog(t, server).NewPublisher()
	b := &replica{rig: newRig(t, Options{Log: p})}
	t.Cleanup(func() { p.Close(t.Context()) })
	b.register(worker("shared", "m", 1))
	b.run(server, nil)
	a.push("theirs", 0, 0, stores(t, 1, 2))
	a.push("shared", 0, 0, stores(t, 1, 3))
	deadline := time.Now().Add(10 * time.Second)
	for b.held("m", 1, 3)["theirs/0"] != 8 {
		if time.Now().After(deadline) {
			t.Fatalf("held %v", b.held("m", 1, 3))
		}
		time.Sleep(5 * time.Millisecond) // a poll with a deadline
	}
	if got := b.held("m", 1, 3)["shared/0"]; got != 0 {
		t.Errorf("the log's batches went to a worker of this process: %d tokens", got)
	}
	if _, err := b.fleet.Publish("theirs", 0, nil); !errors.Is(err, ErrHasEndpoint) {
		t.Errorf("a push to a followed worker: %v", err)
	}
	if !a.fleet.Deregister("theirs", nil) {
		t.Fatal("theirs is not there")
	}
	for len(b.fleet.Workers()) != 1 {
		if time.Now().After(deadline) {
			t.Fatalf("workers %v", b.fleet.Workers())
		}
		time.Sleep(5 * time.Millisecond) // a poll with a deadline
	}
}
