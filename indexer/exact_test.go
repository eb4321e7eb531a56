package indexer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
)

// bound checks the kind of an answer and its reasons.
func (r *rig) bound(id string, q Query, kind BoundKind, reasons ...string) {
	r.t.Helper()
	b := r.match(id, q).Bound
	if diff := cmp.Diff(reasons, b.Reasons()); b.Kind != kind || diff != "" {
		r.t.Errorf("%s: bound %v, want %v; reasons (-want +got):\n%s", id, b.Kind, kind, diff)
	}
}

func (r *rig) source(id string, src events.Source) {
	r.t.Helper()
	src.Worker, src.Model = id, "m"
	r.open(id, src)
}

// What could not be read of a batch may have come after the batch's own clear, so that clear does not make up for it.
func TestRule13_UnreadBehindAClear(t *testing.T) {
	r := newRig(t, "w1", "w2", "w3")
	r.apply("w1", cleared(), chainOf(101, 1), []any{"BlockPinned", hashes(101)})
	r.bound("w1", span(1, 4), Estimate, "events_unread")
	r.apply("w1", cleared())
	r.bound("w1", span(1, 4), Exact)
	r.apply("w2", cleared(), []any{"BlockStored", hashes(101), nil, []any{1, -1, 3, 4}, 4})
	r.bound("w2", span(1, 4), Lower, "stores_refused")
	// [1.5, [["AllBlocksCleared"], <broken off>
	r.w["w3"].Apply(0, append([]byte{0x92, 0x01, 0x92, 0x91, 0xb0}, "AllBlocksCleared"...), time.Unix(1, 0))
	r.bound("w3", span(1, 4), Estimate, "events_unread")
}

// A rank that is first heard of on a stream joined late may hold more, whatever cleared another rank since.
func TestRule13_LateJoinOfARankOnTheWire(t *testing.T) {
	r := newRig(t, "w1/0")
	r.w["w1/0"].Joined(281, false)
	r.batch("w1/0", []any{1.5, []any{cleared()}, 0})
	r.bound("w1/0", span(1, 4), Exact)
	r.batch("w1/0", []any{1.5, []any{chainOf(101, 1)}, 5})
	r.bound("w1/5", span(1, 4), Lower, "history_missing")
	r.batch("w1/0", []any{1.5, []any{cleared()}, 5})
	r.bound("w1/5", span(1, 4), Exact)
}

// What is in doubt about one rank is no doubt about another, but a payload that cannot be read may be any rank's.
func TestRule13_DoubtsOfRanksOnTheWire(t *testing.T) {
	r := newRig(t, "w1/0")
	r.batch("w1/0", []any{1.5, []any{[]any{"BlockPinned"}}, 0})
	r.batch("w1/0", []any{1.5, []any{chainOf(101, 1)}, 5})
	r.bound("w1/0", span(1, 4), Estimate, "events_unread")
	r.bound("w1/5", span(1, 4), Exact)
	r.batch("w1/0", "no batch")
	r.bound("w1/5", span(1, 4), Estimate, "events_unread")
	r.batch("w1/0", []any{1.5, []any{chainOf(101, 1)}, 6})
	r.bound("w1/6", span(1, 4), Lower, "history_missing")
}

// A stream whose batches name the rank of another stream says nothing of its own rank.
func TestRule13_Case55_BatchesOfAnotherStreamsRank(t *testing.T) {
	r := newRig(t, "w1/0", "w1/1")
	r.batch("w1/1", []any{1.5, []any{chainOf(101, 1)}, 0})
	r.bound("w1/1", span(1, 4), Estimate, "events_unread")
	r.bound("w1/0", span(1, 4), Exact)
}

// A window group that keeps nothing of a range sends a store without hashes (105 of 434 stores of vllm-0.32-hybrid-swa).
// The group exists all the same, and accepts nothing.
func TestRule06_StoreWithoutHashes(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", extended(store([]any{}, nil, sequence(1, 8), 4), atGroup, 1, "sliding_window", 8),
		extended(chainOf(101, 2), atGroup, 0, "full_attention"))
	m := r.match("w1", span(1, 9))
	if m.Held != 8 || m.Reusable != 0 {
		t.Errorf("held %d, reusable %d; want 8 and, without a block of the window, 0", m.Held, m.Reusable)
	}
}

// A request may continue in the same engine step what another one stored in it: the dense store that its sparse one needs
// then hangs under a dense store that came before the sparse one.
func TestRule06_SparseStoreBehindAStoreOfTheSameBatch(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1",
		extended(chainOf(101, 1), atGroup, 1, "sliding_window", 4),
		extended(chainOf(101, 1), atGroup, 0, "full_attention"),
		extended(store(hashes(103), 101, sequence(5, 12), 4), atGroup, 1, "sliding_window", 4),
		extended(store(hashes(102, 103), 101, sequence(5, 12), 4), atGroup, 0, "full_attention"))
	r.rejected("w1", events.ReasonUnknownBlock, 0)
	if m := r.match("w1", span(1, 13)); m.Reusable != 12 {
		t.Errorf("reusable %d, want 12", m.Reusable)
	}
	r.bound("w1", span(1, 13), Exact)
}

// Rules of groups that the stream does not tell, or that differ between versions of vLLM, make no facts.
func TestRule13_GroupsWhoseRulesAreNotKnown(t *testing.T) {
	r := newRig(t, "kinds", "single", "sizes", "dense")
	r.source("eagle", events.Source{Engine: events.EngineVLLM, SpeculativeEAGLE: true})
	window := extended(chainOf(101, 2), atGroup, 1, "sliding_window", 4)
	// Kinds are announced since vllm-project/vllm#40984 only, group numbers before.
	r.apply("kinds", extended(chainOf(101, 2), atGroup, 0), extended(chainOf(101, 2), atGroup, 1))
	r.bound("kinds", span(1, 9), Estimate, "group_rules_unknown")
	r.apply("single", extended(chainOf(101, 2), atGroup, 0))
	r.bound("single", span(1, 9), Exact)
	r.apply("eagle", window, extended(chainOf(101, 2), atGroup, 0, "full_attention"))
	r.bound("eagle", span(1, 9), Estimate, "group_rules_unknown")
	// A window group with blocks of its own size, some known by the other group's hashes only.
	r.apply("sizes", extended(chainOf(101, 4), atGroup, 0, "full_attention"),
		extended(store(hashes(104), nil, sequence(1, 16), 8), atGroup, 1, "sliding_window", 8))
	r.bound("sizes", span(1, 17), Estimate, "group_rules_unknown")
	// A store that covers not all of its range, of a group without a kind: a sparse one, of which we know nothing.
	r.apply("dense", extended(store(hashes(102), nil, sequence(1, 8), 4), atGroup, 1),
		extended(chainOf(101, 2), atGroup, 0))
	r.bound("dense", span(1, 9), Estimate, "events_unread", "stores_refused")
}

// SGLang's tree has a block of one namespace once, so two stores of one hash betray namespaces that the hash leaves out
// (sglang-0.5.23-unified_rust_p16_ns), whether the source is configured so or not.
func TestRule13_RepeatedStoresBetrayANamespace(t *testing.T) {
	r := newRig(t, "vllm")
	r.source("sglang", events.Source{Engine: events.EngineSGLang})
	for _, id := range []string{"vllm", "sglang"} {
		r.apply(id, chainOf(101, 1))
		r.bound(id, span(1, 4), Exact)
		r.apply(id, chainOf(101, 1))
	}
	r.bound("vllm", span(1, 4), Exact) // a second copy
	r.bound("sglang", span(1, 4), Upper, "hidden_namespace")
}

// SGLang names the namespace on every event: a child that names none is none of a salted parent, even the only one known.
func TestRule03_Case81_PlainChildOfASaltedParent(t *testing.T) {
	r := newRig(t)
	r.source("w1", events.Source{Engine: events.EngineSGLang})
	r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4, nil, "GPU", map[string]any{"cache_salt": "t-a"}))
	r.apply("w1", store(hashes(102), 101, sequence(5, 8), 4, nil, "GPU"))
	r.held("w1", span(1, 8).salted("t-a"), 4)
	r.held("w1", span(1, 8), 0)
	r.bound("w1", span(1, 8).salted("t-a"), Lower, "stores_refused")
}

// Without the names of its images a prompt may match less than the engine, which knows them, or more.
func TestRule13_Case103_UnnamedImagesAreNoBound(t *testing.T) {
	r := newRig(t, "vllm")
	r.source("sglang", events.Source{Engine: events.EngineSGLang})
	q := span(1, 8)
	q.MediaUnnamed = true
	r.bound("vllm", q, Estimate, "media_unnamed")
	q = span(1, 8).pictured(Feature{Hash: "a", Offset: 4, Length: 4})
	r.bound("vllm", q, Exact)
	r.bound("sglang", q, Estimate, "media_unnamed") // it puts images into the tokens (case 104)
}

// Keys of one block size are not all that a source with two sizes holds, and keys of tokens are none of bigrams.
func TestRule13_KeysOfOneSizeOfTwo(t *testing.T) {
	r := newRig(t, "w1")
	r.source("pairs", events.Source{Engine: events.EngineSGLang, PairKeys: true})
	r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4, nil, "GPU"),
		store(hashes(901), nil, sequence(1, 8), 8, nil, "CPU"))
	q := Query{Model: "m", Keys: Keys(sequence(1, 8), nil, 4, false, Namespace{}), KeySize: 4}
	r.bound("w1", q, Lower, "other_block_size")
	r.bound("pairs", q, Lower, "other_block_size")
}

// A window may hold what lies behind the last key, and the engine then skips more than the keys cover.
func TestRule13_KeysThatEndBeforeTheWindow(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", extended(store(hashes(104), nil, sequence(1, 16), 4), atGroup, 1, "sliding_window", 4),
		extended(chainOf(101, 4), atGroup, 0, "full_attention"))
	q := Query{Model: "m", Keys: Keys(sequence(1, 8), nil, 4, false, Namespace{}), KeySize: 4, PromptTokens: 17}
	if m := r.match("w1", q); m.Reusable != 0 {
		t.Errorf("reusable %d, want 0", m.Reusable)
	}
	r.bound("w1", q, Lower, "prompt_cut")
}

// Bigrams are told by the stream: a source that is not configured for them is capped like one that is.
func TestRule07_PairKeysWithoutTheSetting(t *testing.T) {
	r := newRig(t)
	r.source("told", events.Source{Engine: events.EngineSGLang, PairKeys: true})
	r.source("untold", events.Source{Engine: events.EngineSGLang})
	r.source("vllms", events.Source{Engine: events.EngineSGLang, PairKeys: true, SpeculativeEAGLE: true}) // vLLM's rule
	var pairs []any
	for i := 1; i <= 8; i++ {
		pairs = append(pairs, []any{i, i + 1})
	}
	for _, id := range []string{"told", "untold", "vllms"} {
		r.apply(id, []any{"BlockStored", hashes(101, 102), nil, pairs, 4, nil, "GPU"})
		for n, want := range map[int]int{10: 8, 9: 4} {
			if m := r.match(id, span(1, n)); m.Reusable != want {
				t.Errorf("%s: reusable %d of %d tokens, want %d", id, m.Reusable, n, want)
			}
		}
	}
}

// vLLM tells a reset of its device alike whether its offload tiers were reset too.
func TestRule13_ClearMayLeaveTheHost(t *testing.T) {
	host := store(hashes(101, 102), nil, sequence(1, 8), 4, nil, "CPU")
	r := newRig(t, "w1", "late", "device")
	r.source("sglang", events.Source{Engine: events.EngineSGLang})
	for _, id := range []string{"w1", "sglang", "device"} {
		r.apply(id, store(hashes(101, 102), nil, sequence(1, 8), 4, nil, "GPU"))
	}
	r.apply("w1", host)
	r.apply("sglang", host)
	r.bound("w1", span(1, 9), Exact)
	for _, id := range []string{"w1", "sglang", "device"} {
		r.apply(id, cleared())
	}
	r.bound("w1", span(1, 9), Lower, "tiers_uncleared")
	r.bound("device", span(1, 9), Exact)
	r.bound("sglang", span(1, 9), Exact) // flush_cache takes the host along
	// Who joined late learns with the first offload that there may have been others before the clear.
	r.w["late"].Joined(7, false)
	r.apply("late", cleared())
	r.bound("late", span(1, 9), Exact)
	r.apply("late", host)
	r.bound("late", span(1, 9), Lower, "tiers_uncleared")
	r.w["late"].Reset()
	r.w["late"].Joined(0, true)
	r.bound("late", span(1, 9), Exact)
}

// What is known to have been missed is no fact: a lost connection, a replay under way.
func TestRule13_BehindTheStream(t *testing.T) {
	r := newRig(t, "w1")
	w := r.w["w1"]
	w.State(events.StateConnecting, nil)
	r.bound("w1", span(1, 4), Exact) // nothing was heard, and told to be all
	r.apply("w1", chainOf(101, 1))
	for state, kind := range map[events.State]BoundKind{
		events.StateLive: Exact, events.StateConnecting: Estimate, events.StateReplaying: Estimate,
	} {
		w.State(state, nil)
		if b := r.match("w1", span(1, 4)).Bound; b.Kind != kind {
			t.Errorf("%v: bound %v %q, want %v", state, b.Kind, b.Reasons(), kind)
		}
	}
}

// An engine may reuse what lies in a medium that we do not know.
func TestRule13_Case100_UnknownMedium(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4, nil, "HOLOGRAM"))
	r.bound("w1", span(1, 5), Lower, "stores_refused")
}

// On a hybrid engine a reuse report cannot be told from a prefix that was computed anew (engines.md 3.11).
func TestRule13_ReportsOfAHybridEngine(t *testing.T) {
	r := newRig(t)
	r.source("w1", events.Source{Engine: events.EngineVLLM, ReuseReports: true})
	full := extended(chainOf(101, 2), atGroup, 0, "full_attention")
	r.apply("w1", extended(chainOf(101, 2), atGroup, 1, "sliding_window", 4), full)
	r.bound("w1", span(1, 9), Exact)
	r.apply("w1", full)
	r.bound("w1", span(1, 9), Lower, "stores_refused")
}

// Bigram pages are hashed pair by pair. The first three pages of sglang-0.5.23-unified_rust_p16_eagle were recomputed by
// that rule, 256 of 256 blocks alike; these two were computed with Python's hashlib, pages of 4 pairs over tokens 1..9.
func TestRule03_WitnessOfBigrams(t *testing.T) {
	r := newRig(t)
	r.source("w1", events.Source{Engine: events.EngineSGLang, HashFormat: events.HashFormatDynamo, PairKeys: true})
	var pairs []any
	for i := 1; i <= 8; i++ {
		pairs = append(pairs, []any{i, i + 1})
	}
	extra := span(1, 9)
	extra.Extra = "tenant-x"
	r.apply("w1", []any{"BlockStored", pairHashes, nil, pairs, 4, nil, "GPU"})
	r.held("w1", extra, 8)
	r.held("w1", span(1, 9), 0)
	r.bound("w1", extra, Exact)
	r.bound("w1", span(1, 9), Exact)
}

var pairHashes = []any{int64(3454382204048032194), int64(621505618829236896)}
