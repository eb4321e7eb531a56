package indexrpc_test

import (
	"context"
	"math"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
)

// Counters after one batch that stores two blocks, removes one and clears, one that stores and leaves an orphan, and one
// that repeats.
func TestGetStats(t *testing.T) {
	score := &kvscoutv1.ScoreStats{Requests: 7}
	r := start(t, indexrpc.Options{ScoreStats: func() *kvscoutv1.ScoreStats { return score }, Start: time.Now().Add(-time.Minute)})
	r.register(t, "w0")
	second := payload(t, stored(1, nil, "GPU", 1, 2, 3, 4), stored(2, 1, "CPU", 5, 6, 7, 8), stored(9, 8, "GPU", 1, 1, 1, 1))
	r.publish(t, "w0", batch(0, unhex(t, storedAndGone)), batch(1, second), batch(1, second))

	resp, err := r.GetStats(t.Context(), connect.NewRequest(&kvscoutv1.GetStatsRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	got := resp.Msg.GetStats()
	want := &kvscoutv1.Stats{
		Scopes: 1, Blocks: 2, HolderBlocks: 2, Handles: 2, OrphansWaiting: 1, Score: score,
		Readiness: &kvscoutv1.Readiness{State: kvscoutv1.ServiceState_SERVICE_STATE_READY},
		Sources: []*kvscoutv1.SourceStats{{
			WorkerId: "w0", Model: "m", Engine: "vllm", HistoryComplete: true, Bytes: uint64(len(unhex(t, storedAndGone)) + len(second)), Batches: 2,
			StoredEvents: 4, RemovedEvents: 1, ClearedEvents: 1, OrphansWaiting: 1, Rejected: map[string]uint64{"duplicate": 1},
			Tiers: []*kvscoutv1.TierBlocks{{Tier: kvscoutv1.Tier_TIER_DEVICE, Blocks: 1}, {Tier: kvscoutv1.Tier_TIER_HOST, Blocks: 1}},
			Bound: &kvscoutv1.Bound{Kind: kvscoutv1.BoundKind_BOUND_KIND_LOWER, Reasons: []kvscoutv1.BoundReason{kvscoutv1.BoundReason_BOUND_REASON_ORPHANS_WAITING}},
		}},
	}
	ignore := []cmp.Option{protocmp.Transform(), protocmp.IgnoreFields(&kvscoutv1.Stats{}, "index_version", "uptime", "index_bytes", "retired_bytes"),
		protocmp.IgnoreFields(&kvscoutv1.SourceStats{}, "freshness", "lag_seconds", "state_seconds")}
	if diff := cmp.Diff(want, got, ignore...); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	if got.GetIndexBytes() == 0 || got.GetRetiredBytes() >= got.GetIndexBytes() {
		t.Errorf("%d bytes, %d of them for readers", got.GetIndexBytes(), got.GetRetiredBytes())
	}
	if up := got.GetUptime().AsDuration(); got.GetIndexVersion() == 0 || up < time.Minute || up > 2*time.Minute {
		t.Errorf("version %d, uptime %v", got.GetIndexVersion(), up)
	}
}

// Rule 17: an index at its bound says so: what it takes, what it forgot, and of whom it is answered for with lower bounds.
func TestGetStats_Rule17_MaxBytes(t *testing.T) {
	const limit = 1 << 20
	r := startOver(t, indexer.New(indexer.Options{MaxBytes: limit}), indexrpc.Options{})
	r.register(t, "w0")
	const blocks = 1024
	list := make([]uint32, 4*blocks)
	var got *kvscoutv1.Stats
	for n := range 100 {
		for i := range list {
			list[i] = uint32(n*len(list) + i)
		}
		r.publish(t, "w0", batch(uint64(n), payload(t, stored(1+n*blocks, nil, "GPU", list...))))
		resp, err := r.GetStats(t.Context(), connect.NewRequest(&kvscoutv1.GetStatsRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		if got = resp.Msg.GetStats(); got.GetIndexBytes() > limit+limit/8 || got.GetMaxIndexBytes() != limit {
			t.Fatalf("batch %d: %d bytes of %d", n, got.GetIndexBytes(), got.GetMaxIndexBytes())
		}
	}
	held, evicted := got.GetHolderBlocks(), got.GetSources()[0].GetEvictedBlocks()
	if held == 0 || evicted == 0 || held+evicted != 100*blocks {
		t.Errorf("%d held and %d evicted of %d", held, evicted, 100*blocks)
	}
	resp, err := r.Inspect(t.Context(), connect.NewRequest(&kvscoutv1.InspectRequest{Prompt: &kvscoutv1.PromptTarget{
		Tokens: &kvscoutv1.Tokens{Ids: []int64{99 * 4 * blocks, 99*4*blocks + 1, 99*4*blocks + 2, 99*4*blocks + 3}}}}))
	if err != nil {
		t.Fatal(err)
	}
	want := &kvscoutv1.Bound{Kind: kvscoutv1.BoundKind_BOUND_KIND_LOWER, Reasons: []kvscoutv1.BoundReason{kvscoutv1.BoundReason_BOUND_REASON_CAPPED}}
	if diff := cmp.Diff(want, resp.Msg.GetPrompt().GetHolders()[0].GetBound(), protocmp.Transform()); diff != "" {
		t.Errorf("bound (-want +got):\n%s", diff)
	}
}

func TestStreamStats(t *testing.T) {
	r := start(t, indexrpc.Options{})
	r.register(t, "w0")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// An interval longer than any test: the first answer cannot have waited for it.
	slow, err := r.StreamStats(ctx, connect.NewRequest(&kvscoutv1.StreamStatsRequest{Interval: durationpb.New(time.Hour)}))
	if err != nil {
		t.Fatal(err)
	}
	if !slow.Receive() || len(slow.Msg().GetStats().GetSources()) != 1 {
		t.Fatalf("first answer: %v, %v", slow.Msg(), slow.Err())
	}
	fast, err := r.StreamStats(ctx, connect.NewRequest(&kvscoutv1.StreamStatsRequest{Interval: durationpb.New(10 * time.Millisecond)}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if !fast.Receive() {
			t.Fatalf("answer %d: %v", i, fast.Err())
		}
	}
	cancel()
	for fast.Receive() {
	}
	if code := connect.CodeOf(fast.Err()); code != connect.CodeCanceled {
		t.Errorf("a cancelled stream ended with %v", fast.Err())
	}
	_ = slow.Close()
	_ = fast.Close()
}

func TestStreamStats_Refuses(t *testing.T) {
	r := start(t, indexrpc.Options{MaxStreams: 1})
	open := func(interval *durationpb.Duration) (*connect.ServerStreamForClient[kvscoutv1.StreamStatsResponse], bool) {
		s, err := r.StreamStats(t.Context(), connect.NewRequest(&kvscoutv1.StreamStatsRequest{Interval: interval}))
		if err != nil {
			t.Fatal(err)
		}
		return s, s.Receive()
	}
	for _, bad := range []*durationpb.Duration{
		durationpb.New(-time.Second), durationpb.New(9 * time.Millisecond), {Seconds: math.MaxInt64}, {Nanos: math.MaxInt32},
	} {
		s, ok := open(bad)
		if ok {
			t.Errorf("interval %v was taken", bad)
		}
		wantReason(t, s.Err(), connect.CodeInvalidArgument, "BAD_INTERVAL")
		_ = s.Close()
	}
	// Rule 17: one stream more than there is room for is told so, and when to come again.
	first, ok := open(nil)
	if !ok {
		t.Fatal(first.Err())
	}
	second, ok := open(&durationpb.Duration{})
	if ok {
		t.Error("a second stream was taken")
	}
	wantReason(t, second.Err(), connect.CodeResourceExhausted, "OVERLOADED")
	if got := retryOf(second.Err()); got <= 0 {
		t.Errorf("retry after %v", got)
	}
	_ = second.Close()
	_ = first.Close()
}
