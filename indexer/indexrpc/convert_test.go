package indexrpc_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// Every reason that the index can give has a name in the API, each once, in the enum's order.
func TestBoundOf_AllReasons(t *testing.T) {
	all := indexer.Bound{Kind: indexer.Estimate, Doubt: ^indexer.Doubt(0)}
	got := indexrpc.BoundOf(all)
	if got.GetKind() != kvscoutv1.BoundKind_BOUND_KIND_ESTIMATE || len(got.GetReasons()) != len(all.Reasons()) {
		t.Errorf("bound = %v for %v", got, all.Reasons())
	}
	if !slices.IsSorted(got.GetReasons()) {
		t.Errorf("reasons = %v", got.GetReasons())
	}
	var names, want []string
	for _, r := range got.GetReasons() {
		names = append(names, strings.ToLower(strings.TrimPrefix(r.String(), "BOUND_REASON_")))
	}
	want = slices.Sorted(slices.Values(all.Reasons()))
	slices.Sort(names)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-index +API):\n%s", diff)
	}
}

func TestBoundOf_Kinds(t *testing.T) {
	for kind, want := range map[indexer.BoundKind]string{
		indexer.Exact: "BOUND_KIND_EXACT", indexer.Upper: "BOUND_KIND_UPPER",
		indexer.Lower: "BOUND_KIND_LOWER", indexer.Estimate: "BOUND_KIND_ESTIMATE",
	} {
		if got := indexrpc.BoundOf(indexer.Bound{Kind: kind}).GetKind().String(); got != want {
			t.Errorf("kind %d = %s, want %s", kind, got, want)
		}
	}
}

func TestRole_BothWays(t *testing.T) {
	for role, want := range map[ingest.Role]string{
		ingest.RoleAny: "ROLE_UNSPECIFIED", ingest.RolePrefill: "ROLE_PREFILL", ingest.RoleDecode: "ROLE_DECODE", ingest.RoleBoth: "ROLE_BOTH",
	} {
		if got := indexrpc.RoleOf(role).String(); got != want {
			t.Errorf("role %d = %s, want %s", role, got, want)
		}
		if back, err := indexrpc.RoleFrom(indexrpc.RoleOf(role)); err != nil || back != role {
			t.Errorf("role %d came back as %d, %v", role, back, err)
		}
	}
}

// Absent and 0 differ: 0 is the first sequence number of a vLLM publisher.
func TestFreshnessOf(t *testing.T) {
	now := time.Unix(1000, 0)
	none := indexrpc.FreshnessOf(indexer.Freshness{}, now)
	if none.GetState() != kvscoutv1.FreshnessState_FRESHNESS_STATE_UNKNOWN || none.LastSequence != nil || none.AgeSeconds != nil {
		t.Errorf("never heard: %v", none)
	}
	first := indexrpc.FreshnessOf(indexer.Freshness{State: events.StateLive, HasSequence: true, LastEvent: now.Add(-1500 * time.Millisecond)}, now)
	if first.LastSequence == nil || first.GetLastSequence() != 0 || first.GetAgeSeconds() != 1.5 {
		t.Errorf("after the first batch: %v", first)
	}
}

func TestCount(t *testing.T) {
	if indexrpc.Count(-1) != 0 || indexrpc.Count(7) != 7 || indexrpc.Count(math.MaxInt64) != math.MaxUint32 {
		t.Error("counts do not stay in 32 bits")
	}
}
