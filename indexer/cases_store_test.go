package indexer

import (
	"bytes"
	"testing"

	"github.com/kvscout/kvscout/events"
)

func TestRule02_Case2_OneHashInEveryWidth(t *testing.T) {
	r := newRig(t, "w1")
	const big = uint64(15760518052499183552)
	r.apply("w1", store([]any{big}, nil, sequence(1, 4), 4))
	r.apply("w1", store([]any{uint8(5)}, big, sequence(5, 8), 4))
	r.apply("w1", store([]any{int8(-3)}, uint16(5), sequence(9, 12), 4))
	r.held("w1", span(1, 12), 12)
	r.apply("w1", []any{"BlockRemoved", []any{uint64(18446744073709551613)}})
	r.held("w1", span(1, 12), 8)
}

func TestRule02_Case53_Digests(t *testing.T) {
	r := newRig(t, "w1", "w2")
	first := append(bytes.Repeat([]byte{0}, 31), 1)
	second := append([]byte{0xff}, first[1:]...) // differs from the first in its first byte only
	r.apply("w1", store([]any{first}, nil, sequence(1, 4), 4))
	r.apply("w1", store([]any{second}, first, sequence(5, 8), 4))
	r.apply("w2", store(hashes(7, 8), nil, sequence(1, 8), 4))
	r.held("w1", span(1, 8), 8)
	r.held("w2", span(1, 8), 8)
	r.apply("w1", []any{"BlockRemoved", []any{second}})
	r.held("w1", span(1, 8), 4)
	r.held("w2", span(1, 8), 8)
}

func TestRule10_Case22_BlockSizeZeroOrNegative(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1",
		store(hashes(101), nil, nil, 0, nil, "CPU"),
		store(hashes(102), nil, sequence(1, 4), -4),
		chainOf(201, 1))
	r.rejected("w1", events.ReasonUnknownBlock, 1)
	r.rejected("w1", events.ReasonBadBlockSize, 1)
	r.held("w1", span(1, 4), 4)
	if n := r.x.Stats().Scopes; n != 1 {
		t.Errorf("%d scopes, want 1", n)
	}
}

func TestRule01_Case23_HashesDoNotCoverTheTokens(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", chainOf(101, 3))
	r.apply("w1", store(hashes(105), 103, sequence(13, 20), 4))
	r.apply("w1", store(hashes(106), 105, sequence(21, 24), 4))
	r.held("w1", span(1, 24), 12)
	r.rejected("w1", events.ReasonNotDense, 1)
	r.orphans("w1", 1)
}

func TestRule01_Case89_OneTokenTooMany(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(101), nil, sequence(0, 4), 4))
	r.apply("w1", store(hashes(102), 101, sequence(4, 8), 4))
	r.held("w1", span(0, 7), 0)
	r.rejected("w1", events.ReasonNotDense, 2)
}

func TestRule10_Case155_TokensThatAreNone(t *testing.T) {
	r := newRig(t, "w1")
	for i, bad := range []any{-1, int64(4294967296), "9f3c"} {
		r.apply("w1", []any{"BlockStored", hashes(101 + i), nil, []any{1, bad, 3, 4}, 4})
	}
	r.apply("w1", []any{"BlockStored", hashes(201), nil, []any{1, -1, 3, 4}, 4}, chainOf(301, 1)) // and one good
	r.rejected("w1", events.ReasonBadToken, 4)
	r.held("w1", prompt(1, 4294967295, 3, 4), 0)
	r.held("w1", prompt(1, 0, 3, 4), 0)
	r.held("w1", span(1, 4), 4)
}

func TestRule10_BadPayloadCostsItself(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", chainOf(101, 1))
	r.batch("w1", "no batch")
	r.apply("w1", store(hashes(102), 101, sequence(5, 8), 4))
	r.held("w1", span(1, 8), 8)
	r.rejected("w1", events.ReasonBadPayload, 1)
}

func TestRule10_Case80_OwnParent(t *testing.T) {
	r := newRig(t, "w1")
	sevens := func(n int) []uint32 {
		var out []uint32
		for range n {
			out = append(out, 7)
		}
		return out
	}
	r.apply("w1", store(hashes(101), nil, sevens(4), 4))
	r.apply("w1", store(hashes(101), 101, sevens(4), 4))
	r.rejected("w1", events.ReasonSelfParent, 1)
	r.held("w1", prompt(sevens(12)...), 4)
	r.apply("w1", store(hashes(101, 101), nil, sevens(8), 4)) // and inside one event
	r.rejected("w1", events.ReasonSelfParent, 2)
	r.apply("w1", remove(101))
	r.apply("w1", store(hashes(201), nil, sevens(4), 4))
	r.apply("w1", store(hashes(202), 201, sevens(4), 4))
	r.apply("w1", store(hashes(203), 202, sevens(4), 4))
	r.held("w1", prompt(sevens(12)...), 12)
}

func TestRule10_Case91_FirstMeaningStays(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", chainOf(101, 1))
	r.apply("w1", store(hashes(102), 101, sequence(5, 8), 4))
	r.apply("w1", store(hashes(101), 102, sequence(5, 8), 4))
	r.rejected("w1", events.ReasonConflict, 1)
	r.apply("w1", store(hashes(103), 101, sequence(9, 12), 4))
	r.held("w1", prompt(1, 2, 3, 4, 9, 10, 11, 12), 8)
	r.apply("w1", remove(101))
	r.held("w1", span(1, 12), 0)
}

func TestRule09_Case6_UnknownParentIsNoRoot(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(103), 102, sequence(9, 12), 4))
	r.held("w1", span(9, 12), 0)
	r.held("w1", span(1, 12), 0)
	r.orphans("w1", 1)
	r.apply("w1", chainOf(101, 2)) // the late parent
	r.held("w1", span(1, 12), 12)
	r.held("w1", span(9, 12), 0)
	r.orphans("w1", 0)
}

// Waiting stores keep their place behind blocks that were removed while they waited.
func TestRule09_OrphansBehindRemovedOrphans(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(103), 102, sequence(9, 12), 4))
	r.apply("w1", store(hashes(102, 112), 101, append(sequence(5, 8), sequence(25, 28)...), 4))
	r.apply("w1", remove(102))
	r.apply("w1", chainOf(101, 1))
	r.orphans("w1", 0)
	r.held("w1", span(1, 12), 4)
	r.apply("w1", store(hashes(102), 101, sequence(5, 8), 4))
	r.held("w1", span(1, 12), 12)
	r.apply("w1", remove(102, 102))
	r.rejected("w1", events.ReasonUnknownRemoval, 1)
}

func TestRule09_Case140_ParentOfAnotherWorker(t *testing.T) {
	r := newRig(t, "p1", "d1")
	r.apply("p1", chainOf(101, 2))
	r.apply("d1", store(hashes(103), 102, sequence(9, 12), 4))
	r.held("p1", span(1, 12), 8)
	r.held("d1", span(1, 12), 0)
	r.orphans("d1", 1)
}

func TestRule09_Case11_ClearForgetsParentsAndOrphans(t *testing.T) {
	r := newRig(t, "w1", "w2")
	r.apply("w1", chainOf(101, 2))
	r.apply("w2", chainOf(101, 2))
	r.apply("w1", store(hashes(301), 300, sequence(5, 8), 4))
	r.apply("w1", cleared())
	r.held("w1", span(1, 12), 0)
	r.orphans("w1", 0)
	r.apply("w1", store(hashes(103), 102, sequence(9, 12), 4))
	r.held("w1", span(1, 12), 0)
	r.orphans("w1", 1)
	r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4))
	r.held("w1", span(1, 4), 4)
	r.apply("w1", store(hashes(300), nil, sequence(1, 4), 4)) // adopts nothing: 301 went with the clear
	r.held("w1", span(1, 8), 4)
	r.held("w2", span(1, 8), 8)
}

func TestRule08_Case129_ListOrderWithinABatch(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", chainOf(101, 1))
	r.apply("w1", remove(101), chainOf(101, 1))
	r.held("w1", span(1, 4), 4)
	r.apply("w1", chainOf(101, 1), remove(101), remove(101))
	r.held("w1", span(1, 4), 0)
	r.apply("w1", chainOf(101, 1), cleared(), chainOf(201, 2))
	r.held("w1", span(1, 8), 8)
	r.apply("w1", chainOf(101, 1), cleared())
	r.held("w1", span(1, 8), 0)
}

func TestRule08_Case51_CopiesAreCounted(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", chainOf(101, 3))
	r.apply("w1", store(hashes(103), 102, sequence(9, 12), 4))
	r.apply("w1", remove(103))
	r.held("w1", span(1, 12), 12)
	r.apply("w1", remove(103))
	r.held("w1", span(1, 12), 8)
	r.apply("w1", remove(103))
	r.rejected("w1", events.ReasonUnknownRemoval, 1)
}

func TestRule08_Case99_ReuseReportsAreNoCopies(t *testing.T) {
	for _, reports := range []bool{true, false} {
		r := newRig(t)
		r.open("w1", events.Source{Worker: "w1", Engine: events.EngineVLLM, Model: "m", ReuseReports: reports})
		for range 4 {
			r.apply("w1", chainOf(101, 2))
		}
		r.apply("w1", remove(102))
		want := map[bool]int{true: 4, false: 8}[reports]
		r.held("w1", span(1, 8), want)
		if n := r.w["w1"].Ledger().Stats().ReuseReports; reports != (n == 3) {
			t.Errorf("configured %v: %d reports", reports, n)
		}
	}
}

// What was stored in the same batch is a copy even so, and so is a store of which one block is new.
func TestRule08_Case99_NotEveryRepeatIsAReport(t *testing.T) {
	r := newRig(t)
	r.open("w1", events.Source{Worker: "w1", Engine: events.EngineVLLM, Model: "m", ReuseReports: true})
	r.apply("w1", chainOf(101, 1), chainOf(101, 1))
	r.apply("w1", remove(101))
	r.held("w1", span(1, 4), 4)
	r.apply("w1", chainOf(101, 2)) // 102 is new, so 101 is a second copy
	r.apply("w1", remove(101))
	r.held("w1", span(1, 8), 8)
}

func TestRule08_Case122_OverlappingStores(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", chainOf(101, 2))
	r.apply("w1", chainOf(101, 3))
	r.apply("w1", store(hashes(103), 102, sequence(9, 12), 4))
	blocks := func() int { return r.x.Stats().HolderBlocks }
	if n := blocks(); n != 3 {
		t.Errorf("%d blocks, want 3", n)
	}
	r.apply("w1", remove(103))
	r.apply("w1", remove(103))
	if n := blocks(); n != 2 {
		t.Errorf("%d blocks, want 2", n)
	}
}

func TestRule08_Case130_OverlappingChunks(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(101, 102), nil, sequence(1, 8), 4, nil, "CPU"))
	r.apply("w1", store(hashes(102, 103), 101, sequence(5, 12), 4, nil, "CPU"))
	r.apply("w1", removeFrom("CPU", 101, 102))
	if m := r.match("w1", span(1, 13)); m.With[events.TierHost] != 0 {
		t.Errorf("run on the host %d, want 0: its head is gone", m.With[events.TierHost])
	}
	if n := r.x.Stats().HolderBlocks; n != 2 {
		t.Errorf("%d blocks, want 102 and 103", n)
	}
	r.apply("w1", removeFrom("CPU", 102, 103))
	if s := r.x.Stats(); s.HolderBlocks != 0 || s.Blocks != 0 || s.Scopes != 0 {
		t.Errorf("left over: %+v", s)
	}
}

func TestRule10_Case59_UnknownHashInARemoval(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", chainOf(101, 3))
	r.apply("w1", remove(999, 103, 102))
	r.held("w1", span(1, 12), 4)
	r.rejected("w1", events.ReasonUnknownRemoval, 1)
}

func TestRule08_Case60_AnyOrderOfRemovals(t *testing.T) {
	for _, order := range [][]int{{101, 102, 103}, {103, 101, 102}, {102, 101, 103}, {103, 102, 101}} {
		r := newRig(t, "w1")
		r.apply("w1", chainOf(101, 3))
		for _, h := range order {
			r.apply("w1", remove(h))
		}
		if s := r.x.Stats(); s.Blocks != 0 || s.Scopes != 0 || s.HolderBlocks != 0 {
			t.Errorf("order %v leaves %+v", order, s)
		}
		if n := r.w["w1"].Ledger().Stats().Handles; n != 0 {
			t.Errorf("order %v leaves %d handles", order, n)
		}
	}
}

func TestRule10_Case131_PartialBlocks(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", chainOf(101, 1))
	partial := store(hashes(201), 101, sequence(5, 7), 4)
	r.apply("w1", partial)
	r.apply("w1", remove(201))
	r.apply("w1", store(hashes(102), 101, sequence(5, 8), 4))
	r.apply("w1", partial)
	r.apply("w1", store(hashes(103), 201, sequence(9, 12), 4))
	r.held("w1", span(1, 8), 8)
	r.held("w1", span(1, 12), 8)
	r.rejected("w1", events.ReasonPartialBlock, 2)
	r.rejected("w1", events.ReasonUnknownRemoval, 1)
	r.orphans("w1", 1)
}

func TestRule10_Case123_ManyPartialBlocks(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", chainOf(101, 1))
	for range 1000 {
		r.apply("w1", store(hashes(201), 101, []uint32{9, 10}, 4), remove(201))
	}
	r.rejected("w1", events.ReasonPartialBlock, 1000)
	r.rejected("w1", events.ReasonUnknownRemoval, 1000)
	if n := r.w["w1"].Ledger().Stats().Handles; n != 1 {
		t.Errorf("%d handles, want 1", n)
	}
}

// A parent of 0 means none for llm-d's simulator and LMCache, unless a block 0 was announced (wire.md, quirk 11).
func TestRule09_ParentZero(t *testing.T) {
	r := newRig(t, "w1", "w2")
	r.apply("w1", store(hashes(101), 0, sequence(1, 4), 4))
	r.held("w1", span(1, 4), 4)
	r.apply("w2", store(hashes(0), nil, sequence(1, 4), 4))
	r.apply("w2", store(hashes(102), 0, sequence(5, 8), 4))
	r.held("w2", span(1, 8), 8)
	r.held("w2", span(5, 8), 0)
}
