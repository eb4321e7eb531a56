package scorerpc_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/scorerpc"
)

// Rule 16: Score answers while a large batch is being applied. Statistics of a source take the writers' lock, so a call
// of them that is begun before a Score and still waits after it shows that the lock was held all the time in between.
func TestRule16_ScoreDoesNotWaitForWriters(t *testing.T) {
	r := start(t, scorerpc.Options{})
	r.worker(t, "reader", "m", events.EngineVLLM)
	r.worker(t, "writer", "m", events.EngineVLLM)
	r.publish(t, "reader", store{first: 1, tokens: seq(1, 8), size: 4}.event())
	req := &kvscoutv1.ScoreRequest{Tokens: ids(seq(1, 8)), Candidates: []string{"reader"}}
	ledger := r.index.Ledgers()[0]

	seen := 0
	for attempt := uint32(0); attempt < 20 && seen == 0; attempt++ {
		// Fresh tokens each time, so that each batch is work.
		payload, err := msgpack.Marshal([]any{1.5, [][]any{store{first: 1, tokens: seq(attempt<<20+1, attempt<<20+200_000), size: 4}.event()}})
		if err != nil {
			t.Fatal(err)
		}
		published := make(chan error, 1)
		go func() { // ends with the call, waited for below
			_, err := r.fleet.Publish("writer", 0, []events.Message{{Seq: uint64(attempt), Payload: payload}})
			published <- err
		}()
		for done := false; !done; {
			select {
			case err := <-published:
				if err != nil {
					t.Fatal(err)
				}
				done = true
			default:
				if overtakes(t, r, req, func() { ledger.Stats() }) {
					seen++
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no Score was seen to finish while a writer held the lock")
	}
}

// overtakes says whether a Score begun after locked finished before it.
func overtakes(t *testing.T, r *rig, req *kvscoutv1.ScoreRequest, locked func()) bool {
	var started, ended atomic.Bool
	finished := make(chan struct{})
	go func() { // ends when the lock is free, waited for below
		started.Store(true)
		locked()
		ended.Store(true)
		close(finished)
	}()
	eventually(t, started.Load)
	began := time.Now()
	if got := r.score(t, req).GetWorkers()[0].GetHeldTokens(); got != 8 {
		t.Errorf("held %d while a batch is applied, want 8", got)
	}
	before := !ended.Load()
	<-finished
	// Statistics alone take microseconds: without a lock to wait for they would have been long done.
	return before && time.Since(began) > 5*time.Millisecond
}
