package indexer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/kvscout/kvscout/events"
)

// again is a rig whose sources go on from what r's have; the times until they are stale is within.
func (r *rig) again(within time.Duration) *rig {
	r.t.Helper()
	out := &rig{t: r.t, x: New(Options{}), w: make(map[string]*Writer), seq: make(map[string]uint64)}
	for id, w := range r.w {
		n, err := out.x.NewWriter(w.src, events.Limits{})
		if err != nil {
			r.t.Fatal(err)
		}
		out.w[id], out.seq[id] = n, r.seq[id]
		var s Saved
		if !w.Export(&s) {
			continue
		}
		if err := n.Restore(&s, within); err != nil {
			r.t.Fatal(err)
		}
	}
	r.t.Cleanup(out.finish)
	return out
}

// flat is what a book says, by hash, scope and path: in whatever order it lists them.
func flat(b *Book) map[string]string {
	out := make(map[string]string)
	path := make([]string, len(b.Keys))
	at := 0
	for _, r := range b.Runs {
		above := ""
		if r.Parent < 0 {
			above = fmt.Sprintf("%+v", b.Scopes[^r.Parent])
		} else {
			above = path[r.Parent]
		}
		for range r.Blocks {
			above += fmt.Sprintf(" %x", b.Keys[at])
			path[at] = above
			at++
		}
	}
	n := 0
	for _, r := range b.Held {
		for i := range r.Blocks {
			say := fmt.Sprintf("%b", r.Mask)
			for _, c := range b.Copies {
				if c.Hash == n {
					say += fmt.Sprintf(" %d of %d", c.N, c.Bit)
				}
			}
			out[b.Hashes[n].String()+" at "+path[r.First+i]] = say
			n++
		}
	}
	return out
}

// A book behind a restart says the same, whatever is in it: holes, forks, digests, one hash in two scopes, two hashes for
// one block, copies, tiers, groups, further ranks of the stream.
func TestRule8_RestoredBookIsTheSame(t *testing.T) {
	r := newRig(t, "w/0")
	image := []any{[]any{"aa", 0}}
	r.apply("w/0",
		store(hashes(1, 2, 3, 4, 5, 6), nil, sequence(1, 24), 4),
		store(hashes(21, 22), 3, sequence(101, 108), 4), // a fork
		store(hashes(31, 32), 22, sequence(201, 208), 4, nil, "CPU"),
		store(hashes(1, 2), nil, sequence(1, 8), 4), // copies
		store(hashes(1, 2, 3), nil, sequence(1, 12), 4, nil, "CPU"),
		store(hashes(41, 42), nil, sequence(1, 8), 4, nil, nil, "adapter"),
		store(hashes(51), nil, sequence(1, 4), 4, nil, nil, nil, []any{image}),
		extended(store(hashes(61, 62), nil, sequence(1, 8), 4), atExtras, []any{[]any{"salt"}, nil}),
		store([]any{make([]byte, 32), []byte("0123456789abcdef0123456789abcdef")}, nil, sequence(301, 308), 4),
		store(hashes(71), nil, sequence(1, 4), 4),                     // another hash of the first block
		store(hashes(1), nil, sequence(1, 4), 4, nil, nil, "adapter"), // one hash in two scopes
		remove(2, 2, 22, 4, 5),                   // holes, and copies less
		store(hashes(91), 90, sequence(1, 4), 4), // waits for its parent
	)
	r.batch("w/0", []any{1.5, []any{store(hashes(7, 8), nil, sequence(401, 408), 4)}, 5})
	var before, after Saved
	if !r.w["w/0"].Export(&before) {
		t.Fatal("nothing to save")
	}
	if len(before.Books) != 2 || before.Books[1].Rank != 5 || before.Books[0].Waiting != 1 {
		t.Fatalf("%+v", before)
	}
	n := r.again(time.Hour)
	if !n.w["w/0"].Export(&after) {
		t.Fatal("nothing to save")
	}
	for i := range before.Books {
		if diff := cmp.Diff(flat(&before.Books[i]), flat(&after.Books[i])); diff != "" {
			t.Errorf("before (-), after (+):\n%s", diff)
		}
	}
	if before.Cursor != after.Cursor || after.Cursor.Seq != 1 {
		t.Errorf("%+v, then %+v", before.Cursor, after.Cursor)
	}
	if got := len(flat(&before.Books[0])); got != 16 {
		t.Errorf("%d blocks in the book; the test proves nothing", got)
	}
	n.held("w/0", span(1, 25), 4*1)
	n.apply("w/0", store(hashes(2), 71, sequence(5, 8), 4))
	n.held("w/0", span(1, 25), 12) // what lies behind the hole counts again
	// The store that waited was given up, which is counted and flagged.
	n.rejected("w/0", events.ReasonOrphanDropped, 1)
	if d := n.match("w/0", span(1, 25)).Bound.Doubt; d&DoubtRefused == 0 || d&DoubtOrphans != 0 {
		t.Errorf("%b", d)
	}
}

// Rule 13: what was restored is no fact before it is proven or cleared, and is stale when nothing is heard in time.
func TestRule13_RestoredIsFlagged(t *testing.T) {
	r := newRig(t, "w/0")
	r.apply("w/0", chainOf(1, 2))
	flagged := func(r *rig) bool { return r.match("w/0", span(1, 9)).Bound.Doubt&DoubtResumed != 0 }
	if flagged(r) {
		t.Error("flagged before it was restored")
	}
	n := r.again(time.Hour)
	if b := n.match("w/0", span(1, 9)); b.Bound.Kind != Estimate || b.Held != 8 || b.Freshness.LastSequence != 0 || !b.Freshness.HasSequence {
		t.Errorf("%+v", b)
	}
	n.w["w/0"].Proven()
	if b := n.match("w/0", span(1, 9)); b.Bound.Kind != Exact {
		t.Errorf("proven, %+v", b.Bound)
	}

	n = r.again(time.Hour)
	n.apply("w/0", store(hashes(3), 2, sequence(9, 12), 4))
	if !flagged(n) || n.match("w/0", span(1, 13)).Held != 12 {
		t.Error("gone on, and not flagged")
	}
	// A later proof is of the batch that came since, so it proves nothing of what was before.
	m := n.again(time.Hour)
	m.w["w/0"].Proven()
	if !flagged(m) {
		t.Error("proven by what came later")
	}
	m.apply("w/0", cleared(), chainOf(1, 2))
	if b := m.match("w/0", span(1, 9)); b.Bound.Kind != Exact || b.Held != 8 {
		t.Errorf("cleared, %+v", b)
	}
	// Restored twice and heard of in neither life: the proof is still of the same batch.
	m = r.again(time.Hour).again(time.Hour)
	m.w["w/0"].Proven()
	if flagged(m) {
		t.Error("not proven by the batch of the cursor")
	}

	n = r.again(-time.Second)
	if b := n.match("w/0", span(1, 9)); b.Freshness.State != events.StateStale || b.Bound.Doubt&DoubtStale == 0 {
		t.Errorf("%+v", b)
	}
	n.apply("w/0", store(hashes(3), 2, sequence(9, 12), 4))
	if b := n.match("w/0", span(1, 9)); b.Freshness.State == events.StateStale {
		t.Errorf("heard of, %+v", b)
	}
	n = r.again(-time.Second)
	n.w["w/0"].Reset()
	if b := n.match("w/0", span(1, 9)); b.Held != 0 || b.Bound.Doubt != DoubtHistory || b.Freshness.State == events.StateStale {
		t.Errorf("another life, %+v", b)
	}
}

// What decides later, though it does not show yet, is restored too.
func TestRule13_RestoredHistory(t *testing.T) {
	doubts := func(r *rig, id string) Doubt { return r.match(id, span(1, 9)).Bound.Doubt }
	other := []any{1.5, []any{chainOf(1, 2)}, 6}

	// A rank that is heard of for the first time has missed nothing, if nothing was missed before and it is proven.
	r := newRig(t, "w/0")
	r.apply("w/0", chainOf(1, 2))
	for _, proven := range []bool{true, false} {
		n := r.again(time.Hour).again(time.Hour)
		if proven {
			n.w["w/0"].Proven()
		}
		n.batch("w/0", other)
		if got := doubts(n, "w/6"); (got == 0) != proven || got&^DoubtHistory != 0 {
			t.Errorf("proven %v: %b", proven, got)
		}
	}
	r.w["w/0"].Gap(1, 2)
	r.apply("w/0", chainOf(1, 2))
	n := r.again(time.Hour)
	n.w["w/0"].Proven()
	n.batch("w/0", other)
	if got := doubts(n, "w/6"); got != DoubtHistory {
		t.Errorf("after a gap: %b", got)
	}

	// Blocks may have outlived a clear on slower tiers; a first store there shows that there are such tiers.
	r = newRig(t, "w/0")
	r.w["w/0"].Joined(3, false)
	r.apply("w/0", cleared(), chainOf(1, 2))
	for _, rig := range []*rig{r, r.again(time.Hour)} {
		rig.w["w/0"].Proven()
		before := doubts(rig, "w/0")
		rig.apply("w/0", store(hashes(3), 2, sequence(9, 12), 4, nil, "CPU"))
		if after := doubts(rig, "w/0"); before != 0 || after != DoubtTiers {
			t.Errorf("%b, then %b", before, after)
		}
	}
}

// What is exported while batches arrive is what the batch of the cursor left, on every rank, and none other (rule 8). Each
// batch stores one block.
func TestRule8_ExportIsAsOfOneBatch(t *testing.T) {
	const batches = 3000
	r := newRig(t, "w/0")
	w := r.w["w/0"]
	var payloads [][]byte
	for i := range batches {
		payloads = append(payloads, mustPack(t, []any{1.5, []any{store(hashes(i+1), nil, sequence(4*i, 4*i+3), 4)}, i % 3}))
	}
	done := make(chan struct{})
	var exported atomic.Int64
	go func() { // ends by itself, waited for below
		defer close(done)
		for i, p := range payloads {
			w.Apply(uint64(i), p, time.Unix(1, 0))
			for i%300 == 299 && exported.Load() < int64(i/300) { // or all would be over before the first export
				runtime.Gosched()
			}
		}
	}()
	var s Saved
	for last := uint64(0); last < batches-1; {
		if !w.Export(&s) {
			continue
		}
		exported.Add(1)
		blocks := 0
		for i := range s.Books {
			blocks += len(s.Books[i].Hashes)
			if err := s.Books[i].Check(); err != nil {
				t.Fatal(err)
			}
		}
		if last = s.Cursor.Seq; blocks != int(last)+1 {
			t.Fatalf("%d blocks behind batch %d", blocks, last)
		}
	}
	<-done
	if n := exported.Load(); n < batches/300-1 {
		t.Errorf("exported %d times: the test proves nothing", n)
	}
}

// Nothing is saved of a stream that has applied nothing in this life, or is closed.
func TestExport_Nothing(t *testing.T) {
	r := newRig(t, "w/0")
	w := r.w["w/0"]
	var s Saved
	if w.Export(&s) {
		t.Error("exported before the first batch")
	}
	r.apply("w/0", chainOf(1, 2))
	w.Reset()
	if w.Export(&s) {
		t.Error("exported after a reset")
	}
	r.apply("w/0", chainOf(1, 2))
	if !w.Export(&s) {
		t.Error("not exported")
	}
	w.Close()
	if w.Export(&s) {
		t.Error("exported when closed")
	}
}

// A book that no ledger wrote is refused or restored, and leaves the index sound either way.
func TestRestore_AnyBook(t *testing.T) {
	r := newRig(t, "w/0")
	r.apply("w/0",
		store(hashes(1, 2, 3, 4, 5, 6), nil, sequence(1, 24), 4),
		store(hashes(21, 22), 3, sequence(101, 108), 4),
		store(hashes(1, 2, 3), nil, sequence(1, 12), 4, nil, "CPU"),
		store(hashes(41, 42), nil, sequence(1, 8), 4, nil, nil, "adapter"),
		store(hashes(1), nil, sequence(1, 4), 4, nil, nil, "adapter"), remove(2),
	)
	rng := rand.New(rand.NewPCG(1, 2))
	refused, restored := 0, 0
	for range 4000 {
		var s Saved
		if !r.w["w/0"].Export(&s) {
			t.Fatal("nothing to save")
		}
		for range 1 + rng.IntN(3) {
			mutate(rng, &s.Books[0])
		}
		x := New(Options{})
		w, err := x.NewWriter(s.Source, events.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		switch err := w.Restore(&s, time.Hour); {
		case err == nil:
			restored++
			w.Apply(1, mustPack(t, []any{1.5, []any{chainOf(1, 6), remove(1, 2, 41)}}), time.Now())
		case !errors.Is(err, ErrBook):
			t.Fatal(err)
		default:
			refused++
			if st := w.main.Stats(); st.Handles != 0 || st.Batches != 0 || st.Bound.Doubt != DoubtHistory {
				t.Fatalf("refused, and there is %+v", st)
			}
		}
		if err := x.sound(); err != nil {
			t.Fatalf("%v after %+v", err, s.Books[0])
		}
		w.Close()
		if err := x.empty(); err != nil {
			t.Fatalf("%v after %+v", err, s.Books[0])
		}
	}
	if refused < 100 || restored < 100 {
		t.Errorf("%d refused, %d restored: the test proves little", refused, restored)
	}
}

func mutate(rng *rand.Rand, b *Book) {
	small := func() int { return rng.IntN(12) - 3 }
	switch rng.IntN(10) {
	case 0:
		b.Runs[rng.IntN(len(b.Runs))].Parent = small()
	case 1:
		b.Runs[rng.IntN(len(b.Runs))].Blocks += small()
	case 2:
		b.Held[rng.IntN(len(b.Held))].First = small()
	case 3:
		b.Held[rng.IntN(len(b.Held))].Mask = uint64(1) << rng.IntN(8)
	case 4:
		b.Hashes[rng.IntN(len(b.Hashes))] = b.Hashes[rng.IntN(len(b.Hashes))]
	case 5:
		b.Keys[rng.IntN(len(b.Keys))] = b.Keys[rng.IntN(len(b.Keys))]
	case 6:
		b.Scopes[rng.IntN(len(b.Scopes))] = b.Scopes[rng.IntN(len(b.Scopes))]
	case 7:
		b.Copies = append(b.Copies, Copies{Hash: small(), Bit: uint8(rng.IntN(70)), N: uint32(rng.IntN(4))})
	case 8:
		b.Hashes[rng.IntN(len(b.Hashes))].Hi = 7
	case 9:
		b.Scopes[rng.IntN(len(b.Scopes))].BlockSize = small()
	}
}

func mustPack(t *testing.T, v any) []byte {
	t.Helper()
	b, err := msgpack.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRestore_OtherSource(t *testing.T) {
	r := newRig(t, "w/0")
	r.apply("w/0", chainOf(1, 2))
	var s Saved
	if !r.w["w/0"].Export(&s) {
		t.Fatal("nothing to save")
	}
	src := s.Source
	src.Events = "tcp://10.0.0.1:1"
	x := New(Options{})
	w, err := x.NewWriter(src, events.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Restore(&s, time.Hour); !errors.Is(err, ErrOtherSource) {
		t.Errorf("got %v", err)
	}
	if err := r.w["w/0"].Restore(&s, time.Hour); !errors.Is(err, ErrBook) {
		t.Errorf("into a ledger that is in use: %v", err)
	}
	if x.Fingerprint() != New(Options{}).Fingerprint() || x.Fingerprint() == New(Options{KeepOnGap: true}).Fingerprint() {
		t.Error("the fingerprint tells nothing")
	}
}
