package indexer

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/kvscout/kvscout/events"
)

// sound checks the numbered invariants of chains against a walk over all of it.
func (t *chains) sound() error {
	if err := soundRooms(&t.slabs, &t.slabs.rooms); err != nil {
		return fmt.Errorf("chains: %w", err)
	}
	if err := soundRooms(&t.dict, &t.dict.rooms); err != nil {
		return fmt.Errorf("groups: %w", err)
	}
	edges, live, handles := 0, 0, 0
	var ids []uint32
	t.slabs.each(func(id uint32, _ *chain, _ *chainNote) { ids = append(ids, id) })
	for _, id := range ids {
		c, note := t.slabs.at(id), t.slabs.note(id)
		if note.touched {
			return fmt.Errorf("chain %d is touched", id)
		}
		if c.refs == 0 && c.kids.Load() == 0 {
			return fmt.Errorf("chain %d has neither references nor children (invariant 3)", id)
		}
		if c.parent != 0 {
			edges++
			keys := t.keysOf(c)
			if kid := t.find(edge{c.parent, int(c.fork), keys[0]}); kid != id {
				return fmt.Errorf("chain %d is not at its edge", id)
			}
			p := t.slabs.at(c.parent)
			if up := t.keysOf(p); int(c.fork) < len(up) && up[c.fork] == keys[0] {
				return fmt.Errorf("chain %d begins with what its parent goes on with (invariant 4)", id)
			}
			if c.fork > uint32(t.slabs.note(c.parent).maxFork) {
				return fmt.Errorf("chain %d hangs off behind %d", id, t.slabs.note(c.parent).maxFork)
			}
		}
		live += int(note.live)
		if err := t.soundMembers(id, c, note); err != nil {
			return fmt.Errorf("chain %d: %w", id, err)
		}
		n, err := t.soundGroups(id, c)
		if err != nil {
			return fmt.Errorf("chain %d: %w", id, err)
		}
		handles += n
	}
	for id := range t.dict.rooms.limit() {
		if g := t.dict.groupOf(id); g != nil && g.owned {
			handles += bits.OnesCount16(g.used)
		}
	}
	switch {
	case edges != t.edges.live:
		return fmt.Errorf("%d edges, %d chains with a parent", t.edges.live, edges)
	case live != t.size():
		return fmt.Errorf("%d blocks counted, %d there", t.size(), live)
	case handles != t.dict.live:
		return fmt.Errorf("%d handles counted, %d there", t.dict.live, handles)
	}
	return nil
}

func (t *chains) soundMembers(id uint32, c *chain, note *chainNote) error {
	seen := make(map[lane]bool)
	isles := 0
	list := t.members(c)
	for i := range list {
		e := list[i].Load()
		ln, n := entryLane(e), entryBlocks(e)
		if seen[ln] {
			return fmt.Errorf("lane %d is twice among the members", ln)
		}
		seen[ln] = true
		if n > int(note.live) || int(note.live) > c.length() {
			return fmt.Errorf("lane %d holds %d of %d live blocks of %d", ln, n, note.live, c.length())
		}
		spans, _ := t.islands.Load(laneIn{id, ln})
		if len(spans) > 0 {
			isles++
		}
		for _, s := range spans {
			if int(s.from) <= n || s.from >= s.to || int(s.to) > int(note.live) {
				return fmt.Errorf("lane %d holds %d blocks and %v (invariant 2)", ln, n, spans)
			}
			n = int(s.to)
		}
	}
	if isles != int(c.islands.Load()%islandChange) {
		return fmt.Errorf("%d lanes with islands, %d counted", isles, c.islands.Load())
	}
	return nil
}

// soundGroups checks the list of a chain's shared hashes and that each is found, and counts them.
func (t *chains) soundGroups(id uint32, c *chain) (sum int, err error) {
	end, last := 0, uint32(0)
	for at := c.group; at != 0; at = t.dict.group(at).link {
		g := t.dict.group(at)
		if g.owned || g.chain != id || int(g.base) < end || g.n == 0 || int(g.base)+int(g.n) > c.length() {
			return 0, fmt.Errorf("group %d: %d hashes from %d on, behind %d of %d, of chain %d", at, g.n, g.base, end, c.length(), g.chain)
		}
		for o := range uint32(g.n) {
			found := false
			for q := t.dict.probe(g.hash[o], 0); !found; {
				h := t.dict.next(g.hash[o], &q)
				if h == 0 {
					return 0, fmt.Errorf("hash %d of group %d is not found", o, at)
				}
				found = h == handle(at<<4|o)
			}
		}
		end, last = int(g.base)+int(g.n), at
		sum += int(g.n)
	}
	if last != c.last {
		return 0, fmt.Errorf("last group is %d, not %d", last, c.last)
	}
	return sum, nil
}

// empty checks that nothing is left.
func (t *chains) empty() error {
	t.reclaim()
	if err := t.sound(); err != nil {
		return err
	}
	rest := t.edges.live + t.islands.Size() + t.vias.Size() + len(t.again) + t.size() + t.dict.live + len(t.index) + len(t.limbo)
	bytes := t.bytes() - t.edges.bytes()
	if lanes := int(t.lanes.next) - len(t.lanes.free); rest != 0 || bytes != 0 || lanes != 0 || t.slabs.rooms.used != 0 {
		return fmt.Errorf("%d edges, %d islands, %d lists by hash, %d counts, %d blocks, %d handles, %d maps, %d retired, %d bytes, %d lanes, %d chains left",
			t.edges.live, t.islands.Size(), t.vias.Size(), len(t.again), t.size(), t.dict.live, len(t.index), len(t.limbo), bytes, lanes, t.slabs.rooms.used)
	}
	return nil
}

// A prompt held by more sources than 16 bits count is answered for each of them, and goes when they go.
func TestRule17_MoreSourcesThan16Bits(t *testing.T) {
	const sources = 70000
	x := New(Options{})
	batch := events.Batch{Events: []events.Event{dense(7, 0, sequence(1, 8), 4)}}
	batch.Events[0].Hashes = []events.Hash{events.HashInt(7), events.HashInt(8)}
	var list []*Ledger
	for i := range sources {
		l, err := x.Open(events.Source{Worker: fmt.Sprint(i), Engine: events.EngineVLLM, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		l.Apply(&batch)
		list = append(list, l)
	}
	q := span(1, 9)
	holders, err := x.NewReader().Holders(context.Background(), &q)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[uint32]bool)
	for _, h := range holders {
		if h.Held != 8 || seen[h.Source] {
			t.Fatalf("%s holds %d, seen before: %v", x.Source(h.Source).Source().ID(), h.Held, seen[h.Source])
		}
		seen[h.Source] = true
	}
	if len(seen) != sources {
		t.Errorf("%d holders, want %d", len(seen), sources)
	}
	for _, l := range list {
		l.x.chains.close(l) // lanes only; closing in full would copy the list of sources each time
	}
}

// A prompt of more blocks than 16 bits count is one chain, and a hole in its middle ends the match.
func TestRule01_LongPrompt(t *testing.T) {
	r := newRig(t, "w1")
	const blocks = 100000
	tokens := sequence(1, blocks)
	e := events.Event{Kind: events.Stored, BlockSize: 1, Tokens: tokens}
	for i := range blocks {
		e.Hashes = append(e.Hashes, events.HashInt(uint64(i)+1000))
	}
	l := r.w["w1"].Ledger()
	l.Apply(&events.Batch{Events: []events.Event{e}})
	r.held("w1", prompt(tokens...), blocks)
	l.Apply(&events.Batch{Events: []events.Event{{Kind: events.Removed, Hashes: e.Hashes[70000:70001]}}})
	r.held("w1", prompt(tokens...), 70000)
	if err := r.x.sound(); err != nil {
		t.Error(err)
	}
	again := dense(71000, 70999, tokens[70000:70001], 1)
	l.Apply(&events.Batch{Events: []events.Event{again}})
	r.held("w1", prompt(tokens...), blocks)
}

// Sources and prompts come and go; memory follows what is held, not what was.
func TestRule17_ChurnLeavesNothing(t *testing.T) {
	x := New(Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	var open []*Ledger
	for i := range 300 {
		l, err := x.Open(events.Source{Worker: fmt.Sprint(i), Engine: events.EngineVLLM, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, l)
		for range 20 {
			l := open[rng.IntN(len(open))]
			for _, b := range benchPrompt(rng.IntN(30), 20+rng.IntN(200), uint64(1+rng.IntN(3))*1e6) {
				l.Apply(&b)
				if rng.IntN(3) == 0 {
					h := b.Events[0].Hashes
					l.Apply(&events.Batch{Events: []events.Event{{Kind: events.Removed, Hashes: h[rng.IntN(len(h)):]}}})
				}
			}
		}
		if len(open) > 8 {
			at := rng.IntN(len(open))
			open[at].Close()
			open = slices.Delete(open, at, at+1)
		}
		if i%50 == 0 {
			if err := x.sound(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, l := range open {
		l.Close()
	}
	if err := x.empty(); err != nil {
		t.Error(err)
	}
	if n := x.Stats().Bytes - x.chainsOf("m").edges.bytes(); n != 0 {
		t.Errorf("%d bytes left", n)
	}
	if lanes := int(x.chainsOf("m").lanes.next); lanes > 9 {
		t.Errorf("%d lanes were made for at most 9 sources at a time", lanes)
	}
}

// A reader that is in the middle of a lookup while what it read is dropped holds nobody up and sees nothing else.
func TestRule16_StuckReaderKeepsWhatItRead(t *testing.T) {
	r := newRig(t, "w1", "w2")
	r.apply("w1", chainOf(101, 8))
	q := span(1, 33)
	reader := r.x.NewReader()
	reader.turn("m")
	if err := reader.collect(context.Background(), &q, false); err != nil {
		t.Fatal(err)
	}
	r.w["w1"].Close()
	delete(r.w, "w1")
	w := r.open("w3", events.Source{Worker: "w3", Engine: events.EngineVLLM, Model: "m"})
	r.apply("w3", store(hashes(1, 2), nil, sequence(501, 508), 4)) // takes over the lane of w1
	var m Match
	reader.match(w.Ledger(), &m)
	reader.end()
	if m.Held != 0 {
		t.Errorf("w3 is credited with %d tokens that w1 held", m.Held)
	}
}

// Lookups into a reader's own memory take none from the heap.
func TestRule16_LookupWithoutAllocation(t *testing.T) {
	x := New(Options{})
	for i := range 16 {
		l, err := x.Open(events.Source{Worker: fmt.Sprint(i), Engine: events.EngineVLLM, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range benchPrompt(1, 8+i, 1) {
			l.Apply(&b)
		}
	}
	r, ctx := x.NewReader(), context.Background()
	q := Query{Model: "m", Tokens: benchTokens(1, 64*benchBlock)}
	if n := testing.AllocsPerRun(100, func() {
		list, err := r.Holders(ctx, &q)
		if err != nil || len(list) != 16 {
			t.Errorf("%d holders, %v", len(list), err)
		}
		all, err := r.Lookup(ctx, &q)
		if err != nil || len(all) != 16 {
			t.Errorf("%d matches, %v", len(all), err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A chain is one cache line, and so is what a reader needs of it.
func TestChainIsOneCacheLine(t *testing.T) {
	if size, note := unsafe.Sizeof(chain{}), unsafe.Sizeof(chainNote{}); size != 64 || note > 40 {
		t.Errorf("a chain takes %d bytes and %d, want 64 and at most 40", size, note)
	}
	if size := unsafe.Sizeof(hashGroup{}); size != 128 {
		t.Errorf("a group takes %d bytes, want 128", size)
	}
}

// A store that names a block twice, or its parent among its blocks, is refused whatever its length.
func TestRule10_StoresThatLoop(t *testing.T) {
	for _, blocks := range []int{2, 16, 17, 100, 1000} {
		for _, fault := range []string{"", "twice", "parent", "zero twice"} {
			r := newRig(t, "w1")
			l := r.w["w1"].Ledger()
			l.Apply(&events.Batch{Events: []events.Event{dense(1, 0, sequence(1, 1), 1)}})
			e := dense(1000, 1, sequence(2, blocks+1), 1)
			want := blocks
			switch fault {
			case "twice":
				e.Hashes[blocks-1] = e.Hashes[0]
			case "parent":
				e.Hashes[blocks-1] = e.Parent
			case "zero twice":
				e.Hashes[0], e.Hashes[blocks-1] = events.HashInt(0), events.HashInt(0)
			}
			if fault != "" {
				want = 0
			}
			l.Apply(&events.Batch{Events: []events.Event{e}})
			if got := l.Stats().Resident[events.TierDevice]; got != 1+want {
				t.Errorf("%d blocks, %q: %d resident, want %d", blocks, fault, got, 1+want)
			}
			r.rejected("w1", events.ReasonSelfParent, uint64(min(1, len(fault))))
		}
	}
}
