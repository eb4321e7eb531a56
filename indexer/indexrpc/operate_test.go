package indexrpc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/indexrpc"
)

func (r *rig) dump(t testing.TB, req *kvscoutv1.DumpRequest) ([]*kvscoutv1.DumpResponse, error) {
	t.Helper()
	stream, err := r.Dump(t.Context(), connect.NewRequest(req))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var out []*kvscoutv1.DumpResponse
	for stream.Receive() {
		out = append(out, stream.Msg())
	}
	return out, stream.Err()
}

// salted is stored with a cache salt, as vLLM tells it.
func salted(first int, salt string, tokens ...uint32) []any {
	return append(stored(first, nil, "GPU", tokens...), nil, []any{[]any{salt}})
}

func TestDump(t *testing.T) {
	r := start(t, indexrpc.Options{})
	for _, id := range []string{"w1", "w0", "idle"} {
		r.register(t, id)
	}
	r.publish(t, "w0", batch(0, payload(t, stored(1, nil, "GPU", 1, 2, 3, 4), stored(1, nil, "CPU", 1, 2, 3, 4), salted(-2, "s3cret", 5, 6, 7, 8))))
	r.publish(t, "w1", batch(0, payload(t, stored(7, nil, "GPU", 1, 2, 3, 4))))
	got, err := r.dump(t, &kvscoutv1.DumpRequest{})
	if err != nil {
		t.Fatal(err)
	}
	const device, host = kvscoutv1.Tier_TIER_DEVICE, kvscoutv1.Tier_TIER_HOST
	want := []*kvscoutv1.DumpResponse{
		{WorkerId: "idle"},
		{WorkerId: "w0", HistoryComplete: true, Blocks: []*kvscoutv1.DumpBlock{
			{EngineHash: 1, Model: "m", BlockSize: 4, Tiers: []kvscoutv1.Tier{device, host}},
			{EngineHash: 1<<64 - 2, Model: "m", BlockSize: 4, Salted: true, Tiers: []kvscoutv1.Tier{device}},
		}},
		{WorkerId: "w1", HistoryComplete: true, Blocks: []*kvscoutv1.DumpBlock{
			{EngineHash: 7, Model: "m", BlockSize: 4, Tiers: []kvscoutv1.Tier{device}}}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(&kvscoutv1.DumpResponse{}, "freshness"),
		protocmp.SortRepeated(func(a, b *kvscoutv1.DumpBlock) bool { return a.EngineHash < b.EngineHash })); diff != "" {
		t.Errorf("dump (-want +got):\n%s", diff)
	}
	if text := fmt.Sprint(got); strings.Contains(text, "s3cret") {
		t.Error("the salt is shown")
	}
	one, err := r.dump(t, &kvscoutv1.DumpRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: "w1"}})
	if err != nil || len(one) != 1 || one[0].GetWorkerId() != "w1" {
		t.Errorf("%v, %v", one, err)
	}
	_, err = r.dump(t, &kvscoutv1.DumpRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: "w9"}})
	wantReason(t, err, connect.CodeNotFound, "UNKNOWN_WORKER")
	three := uint32(3)
	_, err = r.dump(t, &kvscoutv1.DumpRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: "w1", Rank: &three}})
	wantReason(t, err, connect.CodeNotFound, "UNKNOWN_RANK")
}

// A source with many blocks comes in parts, none of them large.
func TestRule17_DumpComesInParts(t *testing.T) {
	r := start(t, indexrpc.Options{})
	r.register(t, "w0")
	var ids []uint32
	for i := range 4 * 5000 {
		ids = append(ids, uint32(i))
	}
	r.publish(t, "w0", batch(0, payload(t, stored(1, nil, "GPU", ids...))))
	got, err := r.dump(t, &kvscoutv1.DumpRequest{})
	if err != nil || len(got) != 2 || len(got[0].GetBlocks()) != 4096 || len(got[1].GetBlocks()) != 904 {
		t.Fatalf("%d parts, %v", len(got), err)
	}
	seen := make(map[uint64]bool)
	for _, b := range slices.Concat(got[0].GetBlocks(), got[1].GetBlocks()) {
		seen[b.GetEngineHash()] = true
	}
	if len(seen) != 5000 {
		t.Errorf("%d different blocks", len(seen))
	}
}

func TestClear(t *testing.T) {
	r := start(t, indexrpc.Options{})
	for _, id := range []string{"w0", "w1"} {
		r.register(t, id)
		r.publish(t, id, batch(0, payload(t, stored(1, nil, "GPU", 1, 2, 3, 4, 5, 6, 7, 8), salted(11, "s3cret", 1, 2, 3, 4))))
	}
	clear := func(req *kvscoutv1.ClearRequest, sources uint32, blocks uint64) {
		t.Helper()
		resp, err := r.Clear(t.Context(), connect.NewRequest(req))
		if err != nil || resp.Msg.GetSources() != sources || resp.Msg.GetBlocks() != blocks {
			t.Errorf("%v, %v; want %d blocks of %d sources", resp, err, blocks, sources)
		}
	}
	clear(&kvscoutv1.ClearRequest{Namespace: &kvscoutv1.NamespaceTarget{Model: "m", CacheSalt: "s3cret"}}, 2, 2)
	clear(&kvscoutv1.ClearRequest{Namespace: &kvscoutv1.NamespaceTarget{CacheSalt: "s3cret"}}, 0, 0)
	if got := r.holders(t, tokens(1, 2, 3, 4, 5)); len(got) != 2 {
		t.Errorf("the common namespace: %v", got)
	}
	clear(&kvscoutv1.ClearRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: "w0"}}, 1, 2)
	got := r.holders(t, tokens(1, 2, 3, 4, 5))
	if len(got) != 1 || got[0].GetWorkerId() != "w1" || got[0].GetBound().GetReasons()[0] != kvscoutv1.BoundReason_BOUND_REASON_HISTORY_MISSING {
		t.Errorf("%v", got)
	}
	for reason, req := range map[string]*kvscoutv1.ClearRequest{
		"NO_TARGET":      {},
		"TWO_TARGETS":    {Worker: &kvscoutv1.WorkerTarget{WorkerId: "w0"}, Namespace: &kvscoutv1.NamespaceTarget{}},
		"UNKNOWN_WORKER": {Worker: &kvscoutv1.WorkerTarget{WorkerId: "w9"}},
		"UNKNOWN_MODEL":  {Namespace: &kvscoutv1.NamespaceTarget{Model: "x"}},
	} {
		_, err := r.Clear(t.Context(), connect.NewRequest(req))
		if got := reasonOf(err); got != reason {
			t.Errorf("%v: %q, want %s", req, got, reason)
		}
	}
}

// The state of the service is the worst of what its sources say.
func TestGetStats_Readiness(t *testing.T) {
	var waiting []events.Source
	flagged := false
	r := start(t, indexrpc.Options{
		Waiting: func(time.Time) []events.Source { return waiting },
		Accuracy: func(worker string, _ int) *kvscoutv1.Accuracy {
			return &kvscoutv1.Accuracy{Outcomes: 20, Flagged: flagged && worker == "w0"}
		},
	})
	state := func(want *kvscoutv1.Readiness) {
		t.Helper()
		resp, err := r.GetStats(t.Context(), connect.NewRequest(&kvscoutv1.GetStatsRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, resp.Msg.GetStats().GetReadiness(), protocmp.Transform()); diff != "" {
			t.Errorf("readiness (-want +got):\n%s", diff)
		}
	}
	state(&kvscoutv1.Readiness{State: kvscoutv1.ServiceState_SERVICE_STATE_READY})
	r.register(t, "w0")
	r.register(t, "w1")
	r.publish(t, "w0", batch(0, payload(t, stored(1, nil, "GPU", 1, 2, 3, 4))))
	state(&kvscoutv1.Readiness{State: kvscoutv1.ServiceState_SERVICE_STATE_DEGRADED, Degraded: []string{"w1/0"}})
	r.publish(t, "w1", batch(0, payload(t, stored(1, nil, "GPU", 1, 2, 3, 4))))
	flagged = true
	state(&kvscoutv1.Readiness{State: kvscoutv1.ServiceState_SERVICE_STATE_DEGRADED, Flagged: []string{"w0/0"}})
	flagged, waiting = false, []events.Source{{Worker: "w7", Rank: 1}}
	state(&kvscoutv1.Readiness{State: kvscoutv1.ServiceState_SERVICE_STATE_STARTING, Waiting: []string{"w7/1"}})
	r.service.Drain()
	state(&kvscoutv1.Readiness{State: kvscoutv1.ServiceState_SERVICE_STATE_DRAINING, Waiting: []string{"w7/1"}})
}
