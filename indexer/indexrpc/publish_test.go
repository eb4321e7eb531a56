package indexrpc_test

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/indexrpc"
)

// One stream's life: a start, repeats, a hole, a restart, rubbish.
func TestPublish_Life(t *testing.T) {
	r := start(t, indexrpc.Options{})
	r.register(t, "w0")
	first, second := unhex(t, stored8), payload(t, stored(10, 3, "GPU", 9, 10, 11, 12))
	clear := payload(t, []any{"AllBlocksCleared"})
	steps := []struct {
		name    string
		batches []*kvscoutv1.RawBatch
		want    *kvscoutv1.PublishResponse
	}{
		{"nothing yet", nil, &kvscoutv1.PublishResponse{}},
		{"in order", []*kvscoutv1.RawBatch{batch(0, first), batch(1, second)},
			&kvscoutv1.PublishResponse{Applied: 2, NextSequence: proto.Uint64(2)}},
		{"nothing", nil, &kvscoutv1.PublishResponse{NextSequence: proto.Uint64(2)}},
		{"repeats", []*kvscoutv1.RawBatch{batch(0, first), batch(1, second), batch(2, clear)},
			&kvscoutv1.PublishResponse{Applied: 1, Duplicates: 2, NextSequence: proto.Uint64(3)}},
		{"gaps", []*kvscoutv1.RawBatch{batch(5, clear), batch(7, clear)}, &kvscoutv1.PublishResponse{Applied: 2,
			Gaps: []*kvscoutv1.SequenceRange{{First: 3, Last: 4}, {First: 6, Last: 6}}, NextSequence: proto.Uint64(8)}},
		{"reset", []*kvscoutv1.RawBatch{batch(0, second)}, &kvscoutv1.PublishResponse{Applied: 1, Resets: 1, NextSequence: proto.Uint64(1)}},
	}
	for _, s := range steps {
		if diff := cmp.Diff(s.want, r.publish(t, "w0", s.batches...), protocmp.Transform()); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", s.name, diff)
		}
	}
}

// Rule 10: one bad batch, or event, costs itself, and its reason is told.
func TestRule10_PublishTellsRejects(t *testing.T) {
	r := start(t, indexrpc.Options{})
	r.register(t, "w0", func(s *kvscoutv1.WorkerSpec) { s.Topic = "kv@w0" })
	other := batch(9, unhex(t, stored8))
	other.Topic = "kv@w1"
	same := batch(2, payload(t, []any{"Unheard"}, stored(1, nil, "GPU", 1, 2, 3, 4)))
	same.Topic = "kv@w0@m"
	got := r.publish(t, "w0", batch(0, nil), batch(1, []byte("rubbish")), other, same)
	want := map[string]uint32{"bad_payload": 2, "topic_mismatch": 1, "unknown_event": 1}
	if diff := cmp.Diff(want, got.GetRejected()); diff != "" {
		t.Errorf("rejected (-want +got):\n%s", diff)
	}
	if got.GetNextSequence() != 3 || len(got.GetGaps()) != 0 {
		t.Errorf("answer = %v, want sequence 3 next and no gap", got)
	}
	if got := r.holders(t, tokens(1, 2, 3, 4)); len(got) != 1 {
		t.Errorf("%d holders, want 1", len(got))
	}
}

// A batch of which some events are too large is applied all the same, and what a batch leaves out is told whatever rank
// it names.
func TestRule10_PublishCountsBatchesAndEventsApart(t *testing.T) {
	r := start(t, indexrpc.Options{})
	r.register(t, "w0")
	large := append(stored(9, nil, "GPU", 9, 10, 11, 12), strings.Repeat("x", 20000)) // the adapter's name
	got := r.publish(t, "w0", batch(0, payload(t, large, large, large, stored(1, nil, "GPU", 1, 2, 3, 4))))
	if got.GetApplied() != 1 || got.GetRejected()["too_large"] != 3 {
		t.Errorf("answer = %v, want one batch applied, three events too large", got)
	}
	third, err := msgpack.Marshal([]any{1.5, []any{[]any{"Unheard"}}, 3})
	if err != nil {
		t.Fatal(err)
	}
	got = r.publish(t, "w0", batch(1, third))
	if got.GetApplied() != 1 || got.GetRejected()["unknown_event"] != 1 {
		t.Errorf("answer = %v, want one batch applied, one event of rank 3 not known", got)
	}
}

func TestPublish_Refuses(t *testing.T) {
	r := start(t, indexrpc.Options{MaxBatches: 2, MaxBatchBytes: 100})
	r.register(t, "pushed")
	r.register(t, "heard", func(s *kvscoutv1.WorkerSpec) { s.EventEndpoint = "tcp://127.0.0.1:1" })
	good := batch(0, unhex(t, stored8))
	for _, tt := range []struct {
		req    *kvscoutv1.PublishRequest
		code   connect.Code
		reason string
	}{
		{&kvscoutv1.PublishRequest{}, connect.CodeInvalidArgument, "BAD_WORKER"},
		{&kvscoutv1.PublishRequest{WorkerId: "nobody"}, connect.CodeNotFound, "UNKNOWN_WORKER"},
		{&kvscoutv1.PublishRequest{WorkerId: strings.Repeat("x", 2000)}, connect.CodeNotFound, "UNKNOWN_WORKER"},
		{&kvscoutv1.PublishRequest{WorkerId: "pushed", Rank: 1}, connect.CodeNotFound, "UNKNOWN_RANK"},
		{&kvscoutv1.PublishRequest{WorkerId: "heard"}, connect.CodeFailedPrecondition, "HAS_ENDPOINT"},
		{&kvscoutv1.PublishRequest{WorkerId: "pushed", Batches: []*kvscoutv1.RawBatch{good, good, good}},
			connect.CodeResourceExhausted, "TOO_MANY_BATCHES"},
		{&kvscoutv1.PublishRequest{WorkerId: "pushed", Batches: []*kvscoutv1.RawBatch{good, batch(1, make([]byte, 101))}},
			connect.CodeResourceExhausted, "BATCH_TOO_LARGE"},
	} {
		_, err := r.Publish(t.Context(), connect.NewRequest(tt.req))
		wantReason(t, err, tt.code, tt.reason)
	}
	if got := r.publish(t, "pushed"); got.NextSequence != nil {
		t.Errorf("a refused call was applied: %v", got)
	}
}
