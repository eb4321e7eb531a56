package main

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// Every number of a source has a column.
func TestStats_SourceColumns(t *testing.T) {
	var out bytes.Buffer
	err := printSources(&out, []*kvscoutv1.SourceStats{{
		WorkerId: "w0", Rank: 3, LagSeconds: proto.Float64(0.042), Bytes: 1001, Batches: 1002, ReplayedBatches: 1003,
		StoredEvents: 1004, RemovedEvents: 1005, ClearedEvents: 1006, Gaps: 1007, LostBatches: 1008, Resets: 1009,
		OrphansWaiting: 1010, OrphansDropped: 1011, EvictedBlocks: 1012, Rejected: map[string]uint64{"bad_event": 1013},
		Tiers: []*kvscoutv1.TierBlocks{{Tier: kvscoutv1.Tier_TIER_HOST, Blocks: 1014}},
		Freshness: &kvscoutv1.Freshness{
			State: kvscoutv1.FreshnessState_FRESHNESS_STATE_GAP, LastSequence: proto.Uint64(1015), AgeSeconds: proto.Float64(2.5),
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	head, row, _ := strings.Cut(out.String(), "\n")
	for column, want := range map[string]string{
		"RANK": "3", "STATE": "gap #1015 2.5s ago", "LAG": "42ms", "BYTES": "1001", "BATCHES": "1002", "REPLAYED": "1003", "STORED": "1004",
		"REMOVED": "1005", "CLEARED": "1006", "BLOCKS": "host 1014", "GAPS": "1007", "LOST": "1008", "RESETS": "1009", "WAITING": "1010",
		"GIVEN UP": "1011", "EVICTED": "1012", "REJECTED": "bad_event 1013",
	} {
		if at := strings.Index(head, column); at < 0 || len(row) < at || !strings.HasPrefix(row[at:], want) {
			t.Errorf("%s is not %s:\n%s", column, want, out.String())
		}
	}
}
