package indexrpc_test

import (
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/events/simulate"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
)

// What becomes of a source is in its numbers: of one that joined late over ZMQ, and of one that lost batches, had stores
// without parents and one that could not be read. GetStats and StreamStats tell the same.
func TestStats_EachSource(t *testing.T) {
	engine, err := simulate.New(simulate.Config{Worker: "zmq", Model: "m", Events: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	const before = 3
	for i := range before {
		if _, err := engine.Serve(simulate.Request{Tokens: []uint32{uint32(i), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}); err != nil {
			t.Fatal(err)
		}
	}
	r := startOver(t, indexer.New(indexer.Options{MaxOrphanBlocks: 2}), indexrpc.Options{})
	r.register(t, "zmq", func(s *kvscoutv1.WorkerSpec) {
		s.EventEndpoint, s.ReplayEndpoint, s.Topic = engine.Source().Events, engine.Source().Replay, engine.Source().Topic
	})
	r.register(t, "pushed")
	orphan := func(n int) []any { return stored(n, n-1, "GPU", 1, 1, 1, uint32(n)) }
	sent := [][]byte{
		payload(t, stored(1, nil, "GPU", 1, 2, 3, 4), []any{"BlockStored"}),
		payload(t, orphan(10), orphan(20), orphan(30)), payload(t, orphan(40)),
	}
	r.publish(t, "pushed", batch(0, sent[0]), batch(4, sent[1]), batch(5, sent[2]))

	var zmq, pushed *kvscoutv1.SourceStats
	pick := func(s *kvscoutv1.Stats) {
		for _, src := range s.GetSources() {
			if src.GetWorkerId() == "zmq" {
				zmq = src
			} else {
				pushed = src
			}
		}
	}
	get := func() {
		res, err := r.GetStats(t.Context(), connect.NewRequest(&kvscoutv1.GetStatsRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		pick(res.Msg.GetStats())
	}
	stream := func() {
		s, err := r.StreamStats(t.Context(), connect.NewRequest(&kvscoutv1.StreamStatsRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if !s.Receive() {
			t.Fatal(s.Err())
		}
		pick(s.Msg().GetStats())
	}
	get()
	for deadline := time.Now().Add(20 * time.Second); zmq.GetBatches() < before; get() {
		if time.Now().After(deadline) {
			t.Fatalf("joined: %v", zmq)
		}
		time.Sleep(time.Millisecond) // a poll with a deadline
	}
	for name, ask := range map[string]func(){"GetStats": get, "StreamStats": stream} {
		ask()
		if s := zmq; s.GetReplayedBatches() != before || s.GetConnections() != 1 || s.GetStoredEvents() != before || s.GetBytes() == 0 ||
			s.GetFreshness().GetLastSequence() != before-1 || s.GetFreshness().AgeSeconds == nil || s.LagSeconds == nil || s.GetGaps() != 0 {
			t.Errorf("%s of the one that joined late: %v", name, s)
		}
		s := pushed
		if s.GetFreshness().GetState() != kvscoutv1.FreshnessState_FRESHNESS_STATE_GAP || s.GetFreshness().GetLastSequence() != 5 ||
			s.GetGaps() != 1 || s.GetLostBatches() != 3 || s.GetBatches() != 3 || s.LagSeconds == nil {
			t.Errorf("%s of the one with a gap: %v", name, s)
		}
		if s.GetRejected()["bad_event"] != 1 || s.GetOrphansWaiting()+s.GetOrphansDropped() != 4 || s.GetOrphansDropped() == 0 || s.GetOrphansWaiting() == 0 {
			t.Errorf("%s of what was not applied: %v", name, s)
		}
		if want := len(sent[0]) + len(sent[1]) + len(sent[2]); s.GetBytes() != uint64(want) {
			t.Errorf("%s: %d bytes, want %d", name, s.GetBytes(), want)
		}
	}
}
