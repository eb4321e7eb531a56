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
			WorkerId: "w0", HistoryComplete: true, Bytes: uint64(len(unhex(t, storedAndGone)) + len(second)), Batches: 2,
			StoredEvents: 4, RemovedEvents: 1, ClearedEvents: 1, OrphansWaiting: 1, Rejected: map[string]uint64{"duplicate": 1},
			Tiers: []*kvscoutv1.TierBlocks{{Tier: kvscoutv1.Tier_TIER_DEVICE, Blocks: 1}, {Tier: kvscoutv1.Tier_TIER_HOST, Blocks: 1}},
		}},
	}
	ignore := []cmp.Option{protocmp.Transform(), protocmp.IgnoreFields(&kvscoutv1.Stats{}, "index_version", "uptime"),
		protocmp.IgnoreFields(&kvscoutv1.SourceStats{}, "freshness", "lag_seconds", "state_seconds")}
	if diff := cmp.Diff(want, got, ignore...); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	if up := got.GetUptime().AsDuration(); got.GetIndexVersion() == 0 || up < time.Minute || up > 2*time.Minute {
		t.Errorf("version %d, uptime %v", got.GetIndexVersion(), up)
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
