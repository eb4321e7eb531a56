package ingest

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/simulate"
)

func names(list []events.Source) (out []string) {
	for _, s := range list {
		out = append(out, s.ID())
	}
	return out
}

// A service is ready when each configured source is replayed; one that cannot be reached costs its grace. Sources that are
// pushed to are not waited for.
func TestReadiness(t *testing.T) {
	engine, err := simulate.New(simulate.Config{Worker: "w", Form: simulate.FormVLLM, Model: "m", BlockSize: 4, Blocks: 16,
		Events: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that was free a moment ago: nobody publishes there
	if err != nil {
		t.Fatal(err)
	}
	nobody := "tcp://" + l.Addr().String()
	l.Close()
	workers := []Worker{
		{ID: "w", Model: "m", Sources: []events.Source{engine.Source()}},
		{ID: "gone", Model: "m", Sources: []events.Source{{Worker: "gone", Engine: events.EngineVLLM, Events: nobody}}},
		worker("pushed", "m", 1),
	}
	r := newRig(t, Options{})
	for _, w := range workers {
		r.register(w)
	}
	ready := NewReadiness(r.index, workers, nil, time.Hour)
	stop, done := make(chan struct{}), make(chan bool)
	go func() { done <- ready.Wait(stop) }() // ended by stop, waited for on done
	deadline := time.Now().Add(20 * time.Second)
	for got := names(ready.Waiting(time.Now())); !slices.Equal(got, []string{"gone/0"}); got = names(ready.Waiting(time.Now())) {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %v", got)
		}
		time.Sleep(5 * time.Millisecond) // a poll with a deadline
	}
	if got := ready.Waiting(time.Now().Add(2 * time.Hour)); len(got) != 0 {
		t.Errorf("after its grace %v is waited for", names(got))
	}
	close(stop)
	if <-done {
		t.Error("ready though a source is waited for")
	}

	again := NewReadiness(r.index, workers, nil, time.Hour)
	go func() { done <- again.Wait(nil) }() // ends when the worker has left
	r.fleet.Deregister("gone", nil)
	if !<-done {
		t.Error("not ready")
	}
	if got := again.Waiting(time.Now()); got != nil {
		t.Errorf("once ready %v is waited for", names(got))
	}
	if short := NewReadiness(r.index, workers[1:2], nil, time.Nanosecond); !short.Wait(nil) {
		t.Error("not ready after its grace")
	}
}

// A worker that is known by its address only is waited for until it has told its sources, and then for those.
func TestReadiness_AskedWorkers(t *testing.T) {
	r := newRig(t, Options{})
	ready := NewReadiness(r.index, nil, []string{"w", "pushed"}, time.Hour)
	waiting := func(want ...string) {
		t.Helper()
		if got := names(ready.Waiting(time.Now())); !slices.Equal(got, want) {
			t.Errorf("waiting for %v, want %v", got, want)
		}
	}
	waiting("w/0", "pushed/0")
	r.register(worker("pushed", "m", 1))
	waiting("w/0")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "tcp://" + l.Addr().String()
	l.Close()
	r.register(Worker{ID: "w", Model: "m", Sources: []events.Source{
		{Worker: "w", Engine: events.EngineVLLM}, {Worker: "w", Rank: 1, Engine: events.EngineVLLM, Events: nobody}}})
	waiting("w/1")
}
