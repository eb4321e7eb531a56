package indexer

import (
	"testing"

	"github.com/kvscout/kvscout/events"
)

// tiers checks a source's run on the device and, cumulated, with host, disk and shared tiers; prompts of these tests
// have a token after their last block, so the cap of rule 7 does not show.
func (r *rig) tiers(id string, q Query, want ...int) {
	r.t.Helper()
	m := r.match(id, q)
	run := 0
	for t, n := range want {
		run += m.Covered[t]
		if run != n || m.With[t] != n {
			r.t.Errorf("%s: up to tier %v covered %d, reusable %d; want %d", id, events.Tier(t), run, m.With[t], n)
		}
	}
	if m.Held != want[0] || m.Reusable != want[0] {
		r.t.Errorf("%s: held %d, reusable %d, want %d", id, m.Held, m.Reusable, want[0])
	}
}

func TestRule05_Case13_HostCopyOutlivesTheDevices(t *testing.T) {
	r := newRig(t, "w1")
	block := func(medium string) []any { return store(hashes(101), nil, sequence(1, 4), 4, nil, medium) }
	r.apply("w1", block("GPU"))
	r.apply("w1", block("CPU"))
	r.tiers("w1", span(1, 5), 4, 4)
	r.apply("w1", removeFrom("GPU", 101))
	r.tiers("w1", span(1, 5), 0, 4)
	r.apply("w1", removeFrom("CPU", 101))
	r.tiers("w1", span(1, 5), 0, 0)
}

func TestRule05_Case38_Placeholders(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(101, 102), nil, sequence(1, 8), 4, nil, "GPU"))
	r.apply("w1", store(hashes(101, 102), nil, nil, 0, nil, "CPU"))
	r.apply("w1", store(hashes(999), nil, nil, 0, nil, "CPU"))
	r.apply("w1", removeFrom("GPU", 101, 102))
	r.tiers("w1", span(1, 9), 0, 8)
	r.rejected("w1", events.ReasonUnknownBlock, 1)
}

// A placeholder that leaves its group out means the group that keeps every block.
func TestRule05_Case38_PlaceholderWithoutItsGroup(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", extended(chainOf(101, 2), atGroup, 0, "full_attention"))
	r.apply("w1", store(hashes(101, 102), nil, nil, 0, nil, "CPU"))
	r.tiers("w1", span(1, 9), 8, 8)
	r.apply("w1", []any{"BlockRemoved", hashes(101, 102), "GPU", 0})
	r.tiers("w1", span(1, 9), 0, 8)
	r.apply("w1", removeFrom("CPU", 102))
	r.tiers("w1", span(1, 9), 0, 4)
}

func TestRule05_Case62_TiersAreNotAdded(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(101, 102), nil, sequence(1, 8), 4, nil, "GPU"))
	r.apply("w1", store(hashes(101, 102, 103), nil, sequence(1, 12), 4, nil, "CPU"))
	r.tiers("w1", span(1, 13), 8, 12, 12, 12)
}

func TestRule05_Case63_MixedChain(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4, nil, "GPU"))
	r.apply("w1", store(hashes(102), 101, sequence(5, 8), 4, nil, "CPU"))
	r.apply("w1", store(hashes(103), 102, sequence(9, 12), 4, nil, "GPU"))
	r.tiers("w1", span(1, 13), 4, 12)
	r.apply("w1", removeFrom("CPU", 102))
	r.tiers("w1", span(1, 13), 4, 4)
}

func TestRule05_DiskAndSharedExtend(t *testing.T) {
	r := newRig(t, "w1")
	for i, medium := range []string{"GPU", "CPU", "DISK", "SHARED_STORAGE", "HOLOGRAM"} {
		var parent any
		if i > 0 {
			parent = 100 + i
		}
		r.apply("w1", store(hashes(101+i), parent, sequence(1+4*i, 4+4*i), 4, nil, medium))
	}
	r.tiers("w1", span(1, 21), 4, 8, 12, 16)
	r.rejected("w1", events.ReasonUnknownTier, 1)
	if n := r.w["w1"].Ledger().Stats().Resident[events.TierUnknown]; n != 1 {
		t.Errorf("%d blocks in unknown media, want 1", n)
	}
}

func TestRule05_Case100_UnknownTierIsNotTheDevice(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4, nil, "FS"))
	r.apply("w1", store(hashes(201), nil, sequence(11, 14), 4, nil, ""))
	r.apply("w1", store(hashes(301), nil, sequence(21, 24), 4, nil, nil))
	r.apply("w1", removeFrom("OBJ", 201))
	r.held("w1", span(1, 4), 0)
	r.held("w1", span(11, 14), 4)
	r.held("w1", span(21, 24), 4)
}

func TestRule05_Case151_ClearOfOneTier(t *testing.T) {
	r := newRig(t, "w1")
	both := func() {
		r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4, nil, "GPU"))
		r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4, nil, "CPU"))
	}
	both()
	r.apply("w1", store(hashes(102), 100, sequence(5, 8), 4, nil, "GPU")) // waits for a parent
	r.apply("w1", []any{"TierBlocksCleared", "GPU"})
	r.tiers("w1", span(1, 5), 0, 4)
	r.orphans("w1", 0)
	r.apply("w1", store(hashes(100), nil, sequence(1, 4), 4, nil, "GPU"))
	r.tiers("w1", span(1, 9), 4, 4) // 102 was cleared while it waited
	both()
	r.apply("w1", cleared())
	r.tiers("w1", span(1, 5), 0, 0)
}

func TestRule05_Case64_TierWithLargerBlocks(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(101, 102), nil, sequence(1, 8), 4, nil, "GPU"))
	r.apply("w1", store(hashes(901), nil, sequence(1, 8), 8, nil, "CPU"))
	r.tiers("w1", span(1, 9), 8, 8)
	r.apply("w1", removeFrom("GPU", 101, 102))
	r.tiers("w1", span(1, 9), 0, 8)
}

func TestRule04_Case136_TwoTreesOfOneWorker(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(101), nil, sequence(1, 8), 8, nil, "GPU"))
	r.apply("w1", store(hashes(11, 12), nil, sequence(1, 8), 4, nil, "CPU"))
	r.tiers("w1", span(1, 9), 8, 8)
	r.apply("w1", removeFrom("GPU", 11))
	r.tiers("w1", span(1, 9), 8, 8)
	// A whole block of 8 cannot be reused in part when its last token must be computed (rule 7).
	if m := r.match("w1", span(1, 8)); m.Reusable != 0 || m.Held != 8 || m.With[events.TierHost] != 4 {
		t.Errorf("8 tokens: held %d, reusable %d, with host %d; want 8, 0, 4", m.Held, m.Reusable, m.With[events.TierHost])
	}
}

func TestRule04_Case135_NoCanonicalSize(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", chainOf(101, 5))
	r.apply("w1", remove(104))
	r.held("w1", span(1, 20), 12)
}

func TestRule04_Case106_AuxiliaryCache(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", extended(store(hashes(101), nil, sequence(1, 8), 8), atGroup, 0, "mla_attention"))
	for range 1000 {
		r.apply("w1", extended(store(hashes(901), 900, sequence(1, 4), 4), atGroup, 0, "mla_attention"))
	}
	r.held("w1", span(1, 8), 8)
	r.orphans("w1", 1000)
}

func TestRule04_BlockSizeOfAParent(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", chainOf(101, 2))
	r.apply("w1", store(hashes(103), 102, sequence(9, 16), 8))
	r.rejected("w1", events.ReasonBlockSizeMismatch, 1)
	r.held("w1", span(1, 16), 8)
}

func TestRule06_Case14_GroupsApart(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", extended(chainOf(101, 2), atGroup, 0, "full_attention"))
	r.apply("w1", extended(chainOf(101, 2), atGroup, 1, "sliding_window", 4))
	r.held("w1", span(1, 8), 8)
	r.apply("w1", []any{"BlockRemoved", hashes(101), nil, 1})
	r.held("w1", span(1, 8), 8)
	// A window of 4 needs the ceil(3/4) = 1 block before the end: 102 serves, 101 would for a match of 4.
	for n, want := range map[int]int{9: 8, 8: 0, 5: 0} {
		if m := r.match("w1", span(1, n)); m.Reusable != want {
			t.Errorf("%d tokens: reusable %d, want %d", n, m.Reusable, want)
		}
	}
}

func TestRule06_Case41_AttentionIsGroup3(t *testing.T) {
	r := newRig(t, "w1")
	for g := range 3 {
		r.apply("w1", extended(store(hashes(101), nil, sequence(1, 20), 4), atGroup, g, "mamba"))
	}
	r.apply("w1", extended(chainOf(101, 5), atGroup, 3, "mla_attention"))
	r.held("w1", span(1, 20), 20)
	r.rejected("w1", events.ReasonUnknownBlock, 3)
}

// vLLM sends a window group's store, with the tokens of the whole range and the hashes of the blocks it keeps, before
// the full group's store of the same batch (engines.md, section 3, point 6).
func TestRule06_SparseStoreBeforeItsDenseOne(t *testing.T) {
	r := newRig(t, "w1")
	window := extended(store(hashes(104, 105), nil, sequence(1, 20), 4), atGroup, 1, "sliding_window", 8)
	full := extended(chainOf(101, 5), atGroup, 0, "full_attention")
	r.apply("w1", window, full)
	r.rejected("w1", events.ReasonUnknownBlock, 0)
	// A window of 8 needs ceil(7/4) = 2 blocks before the end: 104 and 105 for 20 tokens.
	for n, want := range map[int]int{21: 20, 20: 0, 17: 0} {
		m := r.match("w1", span(1, n))
		if m.Reusable != want || m.Held != n/4*4 {
			t.Errorf("%d tokens: held %d, reusable %d, want %d", n, m.Held, m.Reusable, want)
		}
	}
	r.apply("w1", extended(store(hashes(103), 102, sequence(9, 12), 4), atGroup, 1, "sliding_window", 8))
	if m := r.match("w1", span(1, 20)); m.Reusable != 16 { // 103 and 104
		t.Errorf("reusable %d, want 16", m.Reusable)
	}
}

// A block that only a hint made known is gone with its batch when no store came to hold it.
func TestRule06_HintsEndWithTheirBatch(t *testing.T) {
	r := newRig(t, "w1")
	window := extended(store(hashes(1, 3), nil, sequence(1, 16), 4), atGroup, 1, "sliding_window", 4)
	full := extended(store(hashes(1, 2), nil, sequence(1, 8), 4), atGroup, 0, "full_attention")
	r.apply("w1", window, full, []any{"BlockRemoved", hashes(1, 2), nil, 0})
	if s := r.w["w1"].Ledger().Stats(); s.Handles != 1 || s.Rejected[events.ReasonUnknownBlock] != 1 {
		t.Errorf("%d handles, %d unknown; want only block 1 in the window group", s.Handles, s.Rejected[events.ReasonUnknownBlock])
	}
}

// Seen in vllm-0.32-hybrid-swa, batch 69: to make room the engine evicts the last copy of a block, and in the same batch
// one group's sparse store names it by hash before the other group's dense store tells its tokens again.
func TestRule06_EvictionAheadOfTheSparseStore(t *testing.T) {
	r := newRig(t, "w1")
	full := func(first, parent any, from, to int) []any {
		return extended(store([]any{first}, parent, sequence(from, to), 4), atGroup, 0, "full_attention")
	}
	window := func(first, parent any, from, to int) []any {
		return extended(store([]any{first}, parent, sequence(from, to), 4), atGroup, 1, "sliding_window", 4)
	}
	r.apply("w1", window(1, nil, 1, 4), full(1, nil, 1, 4), window(2, 1, 5, 8), full(2, 1, 5, 8))
	sparse := extended(store(hashes(2), nil, sequence(1, 8), 4), atGroup, 1, "sliding_window", 4)
	r.apply("w1", []any{"BlockRemoved", hashes(2), nil, 0}, []any{"BlockRemoved", hashes(2), nil, 1}, sparse, full(2, 1, 5, 8))
	r.rejected("w1", events.ReasonUnknownBlock, 0)
	if m := r.match("w1", span(1, 9)); m.Reusable != 8 {
		t.Errorf("reusable %d, want 8", m.Reusable)
	}
}

func TestRule06_Case156_StateExactlyAtTheEnd(t *testing.T) {
	for _, size := range []int{4, 2096} {
		r := newRig(t, "w1")
		state := extended(store(hashes(104), nil, sequence(1, 8*size), size), atGroup, 1, "mamba")
		var list []any
		for i := range 8 {
			list = append(list, 101+i)
		}
		full := extended(store(list, nil, sequence(1, 8*size), size), atGroup, 0, "full_attention")
		r.apply("w1", state, full)
		m := r.match("w1", span(1, 8*size))
		if m.Held != 8*size || m.Reusable != 4*size {
			t.Errorf("block size %d: held %d, reusable %d, want %d, %d", size, m.Held, m.Reusable, 8*size, 4*size)
		}
	}
}

// With EAGLE vLLM asks windows for one block more and drops the last one it matched.
func TestRule06_WindowWithEAGLE(t *testing.T) {
	r := newRig(t)
	r.open("w1", events.Source{Worker: "w1", Engine: events.EngineVLLM, Model: "m", SpeculativeEAGLE: true})
	r.apply("w1", extended(store(hashes(103, 104), nil, sequence(1, 16), 4), atGroup, 1, "sliding_window", 4),
		extended(chainOf(101, 4), atGroup, 0, "full_attention"))
	if m := r.match("w1", span(1, 17)); m.Reusable != 12 {
		t.Errorf("reusable %d, want 12: the two last blocks serve a window of one and the one dropped", m.Reusable)
	}
}

// A kind whose rule is not known makes the answer no fact, and still nothing is counted behind a hole. The full group
// beside it, where there is one, bounds it from above.
func TestRule01_UnknownKindsStopAtHoles(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", extended(chainOf(101, 3), atGroup, 0, "quantum_attention"))
	r.held("w1", span(1, 12), 12)
	r.apply("w1", []any{"BlockRemoved", hashes(102), nil, 0})
	r.held("w1", span(1, 12), 4)
	if b := r.match("w1", span(1, 12)).Bound; b.Kind != Estimate {
		t.Errorf("bound %v, want an estimate: it may accept what lies behind the hole", b)
	}
	r.apply("w1", extended(chainOf(101, 3), atGroup, 1, "full_attention"))
	if b := r.match("w1", span(1, 12)).Bound; b.Kind != Upper {
		t.Errorf("bound %v, want an upper one", b)
	}
}

// Where groups live in blocks of their own size, what the window keeps is not held by the full group.
func TestRule06_GroupsOfTwoBlockSizes(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", extended(store(hashes(101, 102), nil, sequence(1, 8), 4), atGroup, 0, "full_attention"))
	r.apply("w1", extended(store(hashes(201, 202), nil, sequence(1, 16), 8), atGroup, 1, "sliding_window", 8))
	m := r.match("w1", span(1, 17))
	if m.Held != 8 || m.Reusable != 8 {
		t.Errorf("held %d, reusable %d, want 8, 8", m.Held, m.Reusable)
	}
	r.apply("w1", []any{"BlockRemoved", hashes(201), nil, 1})
	if m := r.match("w1", span(1, 17)); m.Held != 8 || m.Reusable != 0 {
		t.Errorf("without the window's first block: held %d, reusable %d, want 8, 0", m.Held, m.Reusable)
	}
}

// SGLang with EAGLE keys by pairs: block i covers pairs 4i..4i+3, which end with the first token of the next block.
func TestRule02_PairKeys(t *testing.T) {
	r := newRig(t)
	r.open("w1", events.Source{Worker: "w1", Engine: events.EngineSGLang, Model: "m", PairKeys: true})
	var pairs []any
	for i := 1; i <= 8; i++ {
		pairs = append(pairs, []any{i, i + 1})
	}
	r.apply("w1", []any{"BlockStored", hashes(101, 102), nil, pairs, 4, nil, "GPU"})
	r.held("w1", span(1, 9), 8)
	r.held("w1", span(1, 8), 4)
	r.held("w1", prompt(1, 2, 3, 4, 99, 6, 7, 8, 9), 0)
}
