package indexer

import (
	"strings"
	"testing"

	"github.com/kvscout/kvscout/events"
)

func TestRule03_Case5_ChildrenInheritTheSalt(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", extended(store(hashes(101, 102), nil, sequence(1, 8), 4), atExtras, []any{[]any{"t-a"}, nil}))
	r.apply("w1", extended(store(hashes(103), 102, sequence(9, 12), 4), atExtras, []any{nil}))
	r.held("w1", span(1, 12).salted("t-a"), 12)
	r.held("w1", span(1, 12), 0)
	r.held("w1", span(1, 12).salted("t-b"), 0)
}

func TestRule03_Case26_ModelsApart(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"1", "2"} {
		r.open("w"+id, events.Source{Worker: "w" + id, Engine: events.EngineVLLM, Model: "m" + id})
		r.apply("w"+id, chainOf(101, 1))
	}
	for model, workers := range map[string]map[string]int{"m1": {"w1": 4}, "m2": {"w2": 4}, "m3": {}} {
		for _, id := range []string{"w1", "w2"} {
			m, ok := r.find(id, Query{Model: model, Tokens: sequence(1, 4)})
			if want, listed := workers[id]; ok != listed || m.Held != want {
				t.Errorf("model %s: %s listed %v with %d tokens, want %v with %d", model, id, ok, m.Held, listed, want)
			}
		}
	}
}

func TestRule03_Case81_OneHashInTwoNamespaces(t *testing.T) {
	r := newRig(t, "w1")
	salted := extended(chainOf(101, 1), atExtras, []any{[]any{"t-a"}})
	r.apply("w1", salted)
	r.apply("w1", chainOf(101, 1))
	r.held("w1", span(1, 4).salted("t-a"), 4)
	r.held("w1", span(1, 4), 4)
	r.held("w1", span(1, 4).salted("t-b"), 0)
	r.apply("w1", remove(101)) // which of the two it means nobody can tell: none stays credited
	for _, salt := range []string{"", "t-a", "t-b"} {
		r.held("w1", span(1, 4).salted(salt), 0)
	}
	r.rejected("w1", events.ReasonAmbiguous, 1)
	if b := r.match("w1", span(1, 4)).Bound; b.Kind != Lower {
		t.Errorf("one of the two may still be there, bound %v", b)
	}
}

// SGLang 0.5.19 publishes hashes without the salt and the salt beside every event of a salted request.
func TestRule03_Case81_ChildrenOfASharedParent(t *testing.T) {
	r := newRig(t)
	r.open("w1", events.Source{Worker: "w1", Engine: events.EngineSGLang, Model: "m"})
	salt := map[string]any{"cache_salt": "t-a"}
	r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4, nil, "GPU", salt))
	r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4, nil, "GPU"))
	r.apply("w1", store(hashes(102), 101, sequence(5, 8), 4, nil, "GPU"))
	r.held("w1", span(1, 8), 8)
	r.held("w1", span(1, 8).salted("t-a"), 4)
	r.apply("w1", store(hashes(103), 101, sequence(15, 18), 4, nil, "GPU", salt))
	r.held("w1", prompt(1, 2, 3, 4, 15, 16, 17, 18).salted("t-a"), 8)
	r.held("w1", prompt(1, 2, 3, 4, 15, 16, 17, 18), 4)
}

// A placeholder that fits blocks of two namespaces credits neither.
func TestRule03_Case81_AmbiguousPlaceholder(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", extended(chainOf(101, 1), atExtras, []any{[]any{"t-a"}}))
	r.apply("w1", chainOf(101, 1))
	r.apply("w1", store(hashes(101), nil, nil, 0, nil, "CPU"))
	for _, salt := range []string{"", "t-a"} {
		if m := r.match("w1", span(1, 5).salted(salt)); m.With[events.TierHost] != 4 || m.Covered[events.TierHost] != 0 {
			t.Errorf("salt %q: with host %d, covered by it %d", salt, m.With[events.TierHost], m.Covered[events.TierHost])
		}
	}
	r.rejected("w1", events.ReasonAmbiguous, 1)
}

func TestRule03_Case82_AdapterSaltAndImageOfOneName(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4, nil, nil, "X", []any{[]any{"X"}}))
	r.held("w1", span(1, 4).adapted("X"), 4)
	r.held("w1", span(1, 4).salted("X"), 0)
	r.held("w1", span(1, 4), 0)
	r.held("w1", span(1, 4).pictured(Feature{Hash: "X", Offset: 0, Length: 4}), 0)
	r.held("w1", span(1, 4).adapted("X").salted("X"), 0)
}

func TestRule03_Case83_ThreePlacesOfASalt(t *testing.T) {
	r := newRig(t, "w1", "w2", "w3", "w4")
	form := map[string]any{"type": "BlockStored", "block_hashes": []int{101}, "parent_block_hash": nil,
		"token_ids": sequence(1, 4), "block_size": 4}
	with := func(key string, value any) map[string]any {
		out := map[string]any{key: value}
		for k, v := range form {
			out[k] = v
		}
		return out
	}
	r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4, nil, nil, map[string]any{"cache_salt": "t-a"}))
	r.apply("w2", with("metadata", map[string]any{"cache_salt": "t-a"}))
	r.apply("w3", with("cache_salt", "t-a"))
	r.apply("w4", store(hashes(101), nil, sequence(1, 4), 4, nil, nil, 42))
	for _, id := range []string{"w1", "w2", "w3"} {
		r.held(id, span(1, 4).salted("t-a"), 4)
		r.held(id, span(1, 4), 0)
	}
	r.held("w4", span(1, 4).salted("t-a"), 0)
	r.held("w4", span(1, 4), 0)
	r.rejected("w4", events.ReasonBadNamespace, 1)
}

func TestRule03_Case127_EmptySaltIsNone(t *testing.T) {
	r := newRig(t, "w1", "w2")
	r.apply("w1", extended(chainOf(101, 1), atExtras, []any{[]any{""}}))
	r.apply("w2", chainOf(101, 1))
	for _, id := range []string{"w1", "w2"} {
		r.held(id, span(1, 4), 4)
		r.held(id, span(1, 4).salted(""), 4)
	}
	if n := r.x.Stats().Scopes; n != 1 {
		t.Errorf("%d scopes, want 1", n)
	}
}

func TestRule03_Case39_AdapterNameCountsOnce(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4, 7, nil, "ad-1", []any{[]any{"ad-1"}}))
	r.apply("w1", store(hashes(102), 101, sequence(5, 8), 4, 7, nil, "ad-1", []any{[]any{"ad-1"}}))
	r.apply("w1", store(hashes(103), 102, sequence(9, 12), 4, nil, nil, nil, []any{[]any{"ad-1"}})) // the name left out
	r.held("w1", span(1, 12).adapted("ad-1"), 12)
	r.held("w1", span(1, 12), 0)
	r.held("w1", span(1, 12).adapted("ad-2"), 0)
}

func TestRule03_Case101_AdapterKnownByNumberOnly(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4, 7, nil, nil))
	r.held("w1", span(1, 4), 0)
	r.rejected("w1", events.ReasonAdapterUnnamed, 1)
	r.apply("w1", store(hashes(201), nil, sequence(1, 4), 4, 0, nil, nil)) // 0 is the base model
	r.held("w1", span(1, 4), 4)
}

func TestRule03_Case152_BaseRequestsInheritNoAdapter(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", store(hashes(101, 102), nil, sequence(1, 8), 4, 7, nil, "ad-1"))
	r.apply("w1", store(hashes(201), nil, sequence(1, 4), 4))
	r.held("w1", span(1, 8), 4)
	r.held("w1", span(1, 8).adapted("ad-1"), 8)
}

// image is a block's entry of extra keys that names an image as engines do today.
func image(id string, offset int) []any { return []any{[]any{id, offset}} }

func TestRule03_Case40_ImagesArePartOfTheKey(t *testing.T) {
	r := newRig(t, "w1")
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	toks := []uint32{1, 50, 50, 2}
	r.apply("w1", extended(store(hashes(101), nil, toks, 4), atExtras, []any{image(a, 1)}))
	at := func(id string) Feature { return Feature{Hash: id, Offset: 1, Length: 2} }
	r.held("w1", prompt(toks...).pictured(at(a)), 4)
	r.held("w1", prompt(toks...).pictured(at(b)), 0)
	r.held("w1", prompt(toks...), 0)
	r.held("w1", prompt(toks...).salted(a), 0)
}

// An image that overlaps two blocks belongs to both, and salt and image of one block stay apart.
func TestRule03_Case40_ImageAcrossBlocks(t *testing.T) {
	r := newRig(t, "w1")
	id := strings.Repeat("c", 64)
	first := append(image(id, 2), "t-a")
	toks := []uint32{1, 2, 50, 50, 50, 50, 3, 4, 5, 6, 7, 8}
	r.apply("w1", extended(store(hashes(101, 102, 103), nil, toks, 4), atExtras, []any{first, image(id, -2), nil}))
	q := prompt(toks...).salted("t-a")
	r.held("w1", q.pictured(Feature{Hash: id, Offset: 2, Length: 4}), 12)
	r.held("w1", q.pictured(Feature{Hash: id, Offset: 2, Length: 2}), 4)
	r.held("w1", q, 0)
}

func TestRule03_Case126_WholeImageIDs(t *testing.T) {
	r := newRig(t, "w1")
	stored, asked := strings.Repeat("1", 60)+"beef", strings.Repeat("2", 60)+"beef"
	r.apply("w1", extended(chainOf(101, 1), atExtras, []any{image(stored, 0)}))
	r.held("w1", span(1, 4).pictured(Feature{Hash: asked, Length: 4}), 0)
	r.held("w1", span(1, 4).pictured(Feature{Hash: stored, Length: 4}), 4)
}

func TestRule13_Case103_ImagesWithoutIDs(t *testing.T) {
	r := newRig(t, "w1")
	toks := []uint32{1, 2, 3, 4, 5, 6, 7, 8, 50, 50, 50, 50}
	r.apply("w1", extended(store(hashes(101, 102, 103), nil, toks, 4), atExtras,
		[]any{nil, nil, image(strings.Repeat("a", 64), 0)}))
	q := prompt(toks...)
	q.MediaUnnamed = true
	m := r.match("w1", q)
	if got := m.Bound.Reasons(); m.Held != 8 || len(got) != 1 || got[0] != "media_unnamed" {
		t.Errorf("held %d, reasons %q; want 8, media_unnamed", m.Held, got)
	}
}

// Digests of prompt embeddings cannot be told by a request, so their blocks match none.
func TestRule03_OpaqueExtrasMatchNothing(t *testing.T) {
	r := newRig(t, "w1")
	r.apply("w1", extended(chainOf(101, 1), atExtras, []any{[]any{[]byte{1, 2, 3}}}))
	r.held("w1", span(1, 4), 0)
	r.apply("w1", extended(store(hashes(201), nil, sequence(11, 14), 4), atExtras, []any{[]any{"one", "two"}}))
	for _, salt := range []string{"", "one", "two"} {
		r.held("w1", span(11, 14).salted(salt), 0)
	}
}

// The hashes were computed with Python's hashlib by the recipe of SGLang's mem_cache/events.py: pages of 4 over tokens
// 1..8, plain (also published in wire.md 3.3), with extra key "tenant-x", with salt "t-a".
var sglangHashes = map[string][]any{
	"":         {int64(-3488128144981237669), int64(5674439469042975057)},
	"tenant-x": {int64(-6359383774227575236), int64(1252875228030340609)},
	"t-a":      {int64(-5945476275092021097), int64(4249420809828149568)},
}

func TestRule03_HiddenNamespaceIsReadFromTheHash(t *testing.T) {
	r := newRig(t)
	r.open("w1", events.Source{Worker: "w1", Engine: events.EngineSGLang, Model: "m",
		HashFormat: events.HashFormatDynamo})
	plain, extra := span(1, 8), span(1, 8)
	extra.Extra = "tenant-x"
	r.apply("w1", store(sglangHashes["tenant-x"], nil, sequence(1, 8), 4, nil, "GPU"))
	r.held("w1", extra, 8)
	r.held("w1", plain, 0)
	r.apply("w1", store(sglangHashes[""][:1], nil, sequence(1, 4), 4, nil, "GPU"))
	r.held("w1", extra, 8)
	r.held("w1", plain, 4)
	r.apply("w1", store(sglangHashes["t-a"], nil, sequence(1, 8), 4, nil, "GPU", map[string]any{"cache_salt": "t-a"}))
	r.held("w1", plain.salted("t-a"), 8)
	if b := r.match("w1", extra).Bound; b.Kind != Exact {
		t.Errorf("the hash is a witness, bound %v", b)
	}
	r.apply("w1", []any{"BlockRemoved", sglangHashes["tenant-x"][:1], "GPU"})
	r.held("w1", extra, 0)
	r.held("w1", plain, 4)
}

func TestRule13_HiddenNamespaceWithoutAWitness(t *testing.T) {
	r := newRig(t)
	r.open("w1", events.Source{Worker: "w1", Engine: events.EngineSGLang, Model: "m"})
	r.apply("w1", store(hashes(101), nil, sequence(1, 4), 4, nil, "GPU"))
	q := span(1, 4)
	q.Extra = "tenant-x"
	if m := r.match("w1", q); m.Held != 4 || m.Bound.Kind != Upper {
		t.Errorf("held %d, bound %v; want at most 4", m.Held, m.Bound)
	}
}

// One engine puts an image into the tokens, another keeps the placeholders and names the image beside them. A request that is
// rendered for the second is answered for it; for the first it is no fact, and no error. Rendered for the first it is its own.
func TestRule13_Case104_ImagesInTokensOrBeside(t *testing.T) {
	r := newRig(t, "beside")
	r.open("within", events.Source{Worker: "within", Engine: events.EngineSGLang, Model: "m"})
	id := strings.Repeat("a", 64)
	within, beside := []uint32{1, 900001, 900001, 2}, []uint32{1, 50, 50, 2}
	r.apply("within", store(hashes(101), nil, within, 4))
	r.apply("beside", extended(store(hashes(101), nil, beside, 4), atExtras, []any{image(id, 1)}))
	q := prompt(beside...).pictured(Feature{Hash: id, Offset: 1, Length: 2})
	r.held("beside", q, 4)
	if m := r.match("beside", q); m.Bound.Kind != Exact {
		t.Errorf("beside: %v, want a fact", m.Bound.Reasons())
	}
	m := r.match("within", q)
	if got := m.Bound.Reasons(); m.Held != 0 || len(got) != 1 || got[0] != "media_unnamed" {
		t.Errorf("within: holds %d, for %v", m.Held, got)
	}
	r.held("within", prompt(within...), 4)
	r.held("beside", prompt(within...), 0)
}
