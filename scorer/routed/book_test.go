package routed

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const size = 4 // tokens per block

var start = time.Unix(1000, 0)

// rig is a book beside an index with sources that are fed decoded events.
type rig struct {
	*Book
	t    *testing.T
	x    *indexer.Index
	next uint64 // engine hash
	seq  map[*indexer.Ledger]uint64
	w    map[string]*indexer.Writer
}

func newRig(t *testing.T, opts Options) *rig {
	x := indexer.New(indexer.Options{})
	return &rig{Book: New(x, opts), t: t, x: x, seq: make(map[*indexer.Ledger]uint64), w: make(map[string]*indexer.Writer)}
}

func (r *rig) open(worker string, edit ...func(*events.Source)) *indexer.Ledger {
	r.t.Helper()
	src := events.Source{Worker: worker, Engine: events.EngineVLLM, Model: "m", BlockSize: size}
	for _, e := range edit {
		e(&src)
	}
	w, err := r.x.NewWriter(src, events.Limits{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.w[worker] = w
	return w.Ledger()
}

// store has the engine of l store the full blocks of a prompt, as one that ran it does; salt as SGLang names it.
func (r *rig) store(l *indexer.Ledger, tokens []uint32, salt string) []events.Hash {
	var hashes []events.Hash
	for range len(tokens) / size {
		r.next++
		hashes = append(hashes, events.HashInt(r.next))
	}
	l.Apply(&events.Batch{Events: []events.Event{{
		Kind: events.Stored, Hashes: hashes, Tokens: tokens[:len(hashes)*size], BlockSize: size, Tier: events.TierDevice, Salt: salt,
	}}})
	r.heard(l)
	return hashes
}

// heard tells the source's next sequence number, as its stream does. The batch is empty.
func (r *rig) heard(l *indexer.Ledger) {
	r.seq[l]++
	r.w[l.Source().Worker].Apply(r.seq[l], []byte{0x92, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0, 0x90}, start.Add(time.Duration(r.seq[l])))
}

func (r *rig) credit(l *indexer.Ledger, q indexer.Query, want int) {
	r.t.Helper()
	got, err := r.Credit(l, q, start.Add(time.Minute))
	if err != nil || got != want {
		r.t.Errorf("credited %d tokens, %v; want %d", got, err, want)
	}
}

func (r *rig) predicted(q indexer.Query, worker string, want int) {
	r.t.Helper()
	got, err := r.Predicted(context.Background(), &q)
	if err != nil || got[Key{worker, 0}] != want {
		r.t.Errorf("predicted %v, %v; want %d of %s", got, err, want, worker)
	}
}

func (r *rig) counted(want Stats) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.Stats()); diff != "" {
		r.t.Errorf("stats (-want +got):\n%s", diff)
	}
}

func seq(from, n int) []uint32 {
	var out []uint32
	for i := range n {
		out = append(out, uint32(from+i))
	}
	return out
}

func ask(tokens []uint32) indexer.Query { return indexer.Query{Model: "m", Tokens: tokens} }

func TestCredit_CountsAtOnce(t *testing.T) {
	r := newRig(t, Options{})
	a, b := r.open("a"), r.open("b")
	r.predicted(ask(seq(1, 20)), "a", 0)
	r.credit(a, ask(seq(1, 18)), 16)
	r.credit(b, ask(seq(1, 8)), 8)
	r.credit(b, ask(seq(1, 3)), 0)
	r.predicted(ask(seq(1, 20)), "a", 16)
	r.predicted(ask(seq(1, 20)), "b", 8)
	r.predicted(ask(seq(1, 9)), "a", 8)
	r.predicted(ask(slices.Concat(seq(1, 10), seq(100, 10))), "a", 8)
	r.predicted(ask(seq(2, 20)), "a", 0)
	r.counted(Stats{All: 2, Waiting: 2})
}

func TestRule3_CreditsKeepToTheirNamespace(t *testing.T) {
	r := newRig(t, Options{})
	sglang := func(s *events.Source) { s.Engine = events.EngineSGLang }
	l := r.open("a", sglang)
	in := func(ns indexer.Namespace) indexer.Query { q := ask(seq(1, 16)); q.Namespace = ns; return q }
	spaces := []indexer.Namespace{{}, {Salt: "s"}, {Salt: "t"}, {Adapter: "s"}, {Extra: "s"}, {Salt: "s", Extra: "s"}, {Salt: "s", Adapter: "a"}}
	for i, ns := range spaces {
		r.credit(l, in(ns), 16)
		for j, other := range spaces {
			want := 0
			if j <= i {
				want = 16
			}
			r.predicted(in(other), "a", want)
		}
	}
	other := ask(seq(1, 16))
	other.Model = "n"
	r.predicted(other, "a", 0)
}

func TestCredit_Refuses(t *testing.T) {
	r := newRig(t, Options{})
	edit := func(change func(*indexer.Query)) indexer.Query { q := ask(seq(1, 16)); change(&q); return q }
	plain := func(*events.Source) {}
	tests := []struct {
		name   string
		source func(*events.Source)
		query  indexer.Query
	}{
		{"hashes", plain, edit(func(q *indexer.Query) { q.Tokens, q.Keys, q.KeySize = nil, []indexer.Key{1}, size })},
		{"other model", plain, edit(func(q *indexer.Query) { q.Model = "n" })},
		{"unnamed media", plain, edit(func(q *indexer.Query) { q.MediaUnnamed = true })},
		{"extra key of vLLM", plain, edit(func(q *indexer.Query) { q.Extra = "e" })},
		{"no block size", func(s *events.Source) { s.BlockSize = 0 }, ask(seq(1, 16))},
		{"hidden window", func(s *events.Source) { s.Unpublished = []events.Hidden{events.HiddenWindow} }, ask(seq(1, 16))},
		{"hidden state", func(s *events.Source) { s.Unpublished = []events.Hidden{events.HiddenState} }, ask(seq(1, 16))},
		{"salt of TensorRT-LLM", func(s *events.Source) { s.Engine = events.EngineTRTLLM }, edit(func(q *indexer.Query) { q.Salt = "s" })},
		{"adapter of TensorRT-LLM", func(s *events.Source) { s.Engine = events.EngineTRTLLM }, edit(func(q *indexer.Query) { q.Adapter = "a" })},
		{"salt of old SGLang", func(s *events.Source) { s.Engine, s.Version = events.EngineSGLang, "0.5.9" }, edit(func(q *indexer.Query) { q.Salt = "s" })},
	}
	for _, tt := range tests {
		if _, err := r.Credit(r.open(tt.name, tt.source), tt.query, start); !errors.Is(err, ErrNotCreditable) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	groups := r.open("groups")
	for g := range 2 {
		groups.Apply(&events.Batch{Events: []events.Event{{Kind: events.Stored, Hashes: []events.Hash{events.HashInt(uint64(g))}, Tokens: seq(1, 4),
			BlockSize: size, Group: g, HasGroup: true, Spec: events.SpecFull}}})
	}
	if _, err := r.Credit(groups, ask(seq(1, 16)), start); !errors.Is(err, ErrNotCreditable) {
		t.Errorf("two groups: %v", err)
	}
	r.counted(Stats{})
}

func TestCredit_StopsAtMedia(t *testing.T) {
	r := newRig(t, Options{})
	q := ask(seq(1, 16))
	q.Features = []indexer.Feature{{Hash: "h", Offset: 9, Length: 2}}
	r.credit(r.open("a"), q, 8)
	r.predicted(q, "a", 8)
	r.predicted(ask(seq(1, 16)), "a", 8)
}

// A radix tree of bigrams holds (n-1)/size blocks of n tokens.
func TestCredit_Pairs(t *testing.T) {
	r := newRig(t, Options{})
	l := r.open("a", func(s *events.Source) { s.Engine, s.PairKeys = events.EngineSGLang, true })
	r.credit(l, ask(seq(1, 16)), 12)
	r.predicted(ask(seq(1, 17)), "a", 12)
	r.predicted(ask(slices.Concat(seq(1, 12), seq(90, 8))), "a", 8)
}

func TestLook_Expires(t *testing.T) {
	r := newRig(t, Options{})
	l := r.open("a")
	r.credit(l, ask(seq(1, 16)), 16)
	if _, err := r.Credit(l, ask(seq(1, 8)), start.Add(2*time.Minute)); err != nil {
		t.Fatal(err)
	}
	r.look(context.Background(), start.Add(time.Minute-1))
	r.predicted(ask(seq(1, 16)), "a", 16)
	r.look(context.Background(), start.Add(time.Minute))
	r.predicted(ask(seq(1, 16)), "a", 8)
	r.look(context.Background(), start.Add(2*time.Minute))
	r.predicted(ask(seq(1, 16)), "a", 0)
	r.counted(Stats{All: 2, Expired: 2})
}

// What events confirmed and the engine evicted afterwards is credited no more.
func TestLook_Confirms(t *testing.T) {
	r := newRig(t, Options{})
	l := r.open("a")
	r.credit(l, ask(seq(1, 16)), 16)
	r.look(context.Background(), start)
	r.store(l, seq(1, 8), "")
	r.look(context.Background(), start)
	r.predicted(ask(seq(1, 16)), "a", 16) // half of it is there
	hashes := r.store(l, seq(1, 16), "")
	r.look(context.Background(), start)
	r.predicted(ask(seq(1, 16)), "a", 0)
	r.counted(Stats{All: 1, Confirmed: 1})
	l.Apply(&events.Batch{Events: []events.Event{{Kind: events.Removed, Hashes: hashes}}})
	r.predicted(ask(seq(1, 16)), "a", 0)
	r.credit(l, ask(seq(1, 8)), 8) // held already
	r.look(context.Background(), start)
	r.counted(Stats{All: 2, Confirmed: 2})
}

func TestLook_DropsWithTheEngine(t *testing.T) {
	r := newRig(t, Options{})
	a, b := r.open("a"), r.open("b")
	r.credit(a, ask(seq(1, 16)), 16)
	r.credit(b, ask(seq(1, 16)), 16)
	a.Reset()
	r.look(context.Background(), start)
	r.predicted(ask(seq(1, 16)), "a", 0)
	r.predicted(ask(seq(1, 16)), "b", 16)
	r.w["b"].Close()
	r.look(context.Background(), start)
	r.predicted(ask(seq(1, 16)), "b", 0)
	r.credit(r.open("b"), ask(seq(1, 8)), 8)
	r.counted(Stats{All: 3, Waiting: 1, Dropped: 2})
}

func TestRule17_CreditsAreBounded(t *testing.T) {
	r := newRig(t, Options{MaxCredits: 2, MaxTokens: 30})
	l := r.open("a")
	r.credit(l, ask(seq(1, 16)), 16)
	if _, err := r.Credit(l, ask(seq(1, 16)), start); !errors.Is(err, ErrFull) {
		t.Errorf("too many tokens: %v", err)
	}
	r.credit(l, ask(seq(1, 4)), 4)
	if _, err := r.Credit(l, ask(seq(1, 4)), start); !errors.Is(err, ErrFull) {
		t.Errorf("too many credits: %v", err)
	}
	r.look(context.Background(), start.Add(time.Hour))
	r.credit(l, ask(seq(1, 16)), 16)
}

// Run ends credits by itself.
func TestRun(t *testing.T) {
	r := newRig(t, Options{})
	l := r.open("a")
	if _, err := r.Credit(l, ask(seq(1, 16)), time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }() // ended by cancel, waited for below
	for r.Stats().Expired == 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond) // a poll with a deadline: nothing tells
	}
	cancel()
	<-done
	r.counted(Stats{All: 1, Expired: 1})
}

// Invariant 1: what is credited is what the engine holds once it has run what was sent to it. The engine is a twin that
// stores every prompt at once; the reference is a comparison of the prompts themselves.
func TestPredicted_NeverMoreThanConfirmed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	prompt := func() []uint32 {
		var out []uint32
		for range rng.IntN(40) {
			out = append(out, uint32(rng.IntN(2)))
		}
		return out
	}
	r, twin := newRig(t, Options{}), newRig(t, Options{})
	l, confirmed := r.open("a"), twin.open("a")
	type sent struct {
		tokens []uint32
		until  time.Time
	}
	var waiting []sent
	now := start
	for range 2000 {
		now = now.Add(time.Second)
		r.look(context.Background(), now)
		waiting = slices.DeleteFunc(waiting, func(s sent) bool { return !now.Before(s.until) })
		s := sent{prompt(), now.Add(time.Duration(rng.IntN(20)) * time.Second)}
		if _, err := r.Credit(l, ask(s.tokens), s.until); err != nil {
			t.Fatal(err)
		}
		twin.store(confirmed, s.tokens, "")
		waiting = append(waiting, s)
		q := ask(prompt())
		want := 0
		for _, s := range waiting {
			n := 0
			for n < min(len(s.tokens), len(q.Tokens)) && s.tokens[n] == q.Tokens[n] {
				n++
			}
			want = max(want, n/size*size)
		}
		r.predicted(q, "a", want)
		list, err := twin.x.Lookup(context.Background(), q)
		if err != nil || list[0].Reach() < want {
			t.Fatalf("predicted %d; once confirmed %d are held, %v", want, list[0].Reach(), err)
		}
	}
	if s := r.Stats(); s.Expired == 0 || s.Waiting == 0 || s.All != s.Waiting+s.Expired {
		t.Errorf("the test had too little to do: %+v", s)
	}
}
