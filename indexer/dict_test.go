package indexer

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kvscout/kvscout/events"
)

// The dictionary finds every handle of a hash and no other, while it grows, shrinks and fills with dead slots, with
// equal hashes in one space and in several.
func TestRule02_Dict(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 31))
		var d dict
		type name struct {
			hash  uint64
			space uint32
		}
		have := make(map[name][]handle)
		var names []name
		enter := func() {
			n := name{hash: rng.Uint64N(40000), space: uint32(rng.IntN(3))}
			if seed == 1 {
				n.hash *= 0x9E3779B97F4A7C15 // what sources seed by their number must not fall together
				n.hash ^= uint64(n.space) * 0x9E3779B97F4A7C15
			}
			id := d.newGroup(1, 0, n.space)
			d.fill(id, []events.Hash{events.HashInt(n.hash)}, []probe{d.probe(n.hash, n.space)})
			have[n] = append(have[n], handle(id<<4))
			names = append(names, n)
		}
		drop := func() {
			at := rng.IntN(len(names))
			n := names[at]
			names[at] = names[len(names)-1]
			names = names[:len(names)-1]
			list := have[n]
			d.drop(list[0])
			d.freeGroup(uint32(list[0] >> 4))
			if have[n] = list[1:]; len(list) == 1 {
				delete(have, n)
			}
		}
		for _, goal := range []int{50, 20000, 100, 5000, 0} {
			for len(names) != goal {
				if len(names) < goal && rng.IntN(4) > 0 || len(names) == 0 {
					enter()
				} else {
					drop()
				}
			}
			for n, want := range have {
				var got []handle
				for q := d.probe(n.hash, n.space); ; {
					h := d.next(n.hash, &q)
					if h == 0 {
						break
					}
					if g, _ := d.of(h); g.of(n.space) {
						got = append(got, h)
					}
				}
				slices.Sort(got)
				if want = slices.Clone(want); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
					t.Fatalf("seed %d, %d held: %v is at %v, want %v", seed, len(names), n, got, want)
				}
			}
			if d.live != len(names) {
				t.Fatalf("%d handles counted, %d there", d.live, len(names))
			}
		}
		if d.tidy(); d.mem.Load() != 0 {
			t.Errorf("%d bytes left", d.mem.Load())
		}
	}
}

// Copies beyond the first are counted block by block, in runs (rule 8).
func TestRule08_CopiesInRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	l := &Ledger{}
	var plain [300]uint32
	for range 20000 {
		if rng.IntN(3) == 0 {
			from := rng.IntN(290)
			to := from + 1 + rng.IntN(10)
			n := uint32(1 + rng.IntN(2))
			l.copyLocked(7, from, to, n)
			for i := from; i < to; i++ {
				plain[i] += n
			}
			continue
		}
		at := rng.IntN(len(plain))
		if took := l.takeCopyLocked(placeAt(7, at+1)); took != (plain[at] > 0) {
			t.Fatalf("took %v of %d copies", took, plain[at])
		}
		if plain[at] > 0 {
			plain[at]--
		}
		if got := l.copiesLocked(placeAt(7, at+1)); got != plain[at] {
			t.Fatalf("%d copies, want %d", got, plain[at])
		}
	}
	last := uint16(0)
	for i, r := range l.more[7] {
		if r.from >= r.to || r.from < last || r.n == 0 || i > 0 && r.from == last && r.n == l.more[7][i-1].n {
			t.Errorf("run %d is %+v behind %d", i, r, last)
		}
		last = r.to
	}
	for at := range plain {
		if got := l.takeCopiesLocked(placeAt(7, at+1)); got != plain[at] {
			t.Errorf("block %d: %d copies, want %d", at, got, plain[at])
		}
	}
	if len(l.more) != 0 {
		t.Errorf("%v left", l.more)
	}
}

// A source with hashes of its own remembers groups whose slabs went; a second hash for one of its places finds its way all
// the same.
func TestRule02_SecondHashBehindGroupsThatWent(t *testing.T) {
	r := newRig(t, "first", "own")
	r.apply("first", chainOf(1, 1))
	l := r.w["own"].Ledger()
	r.apply("own", chainOf(100001, 1)) // another hash than the first one's: a space of its own
	const blocks = 64 * slabRecords
	goes := dense(200000, 0, sequence(1000, 1000+blocks-1), 1)
	for at := 0; at < blocks; at += maxChain / 2 {
		e := goes
		e.Hashes, e.Tokens = goes.Hashes[at:min(at+maxChain/2, blocks)], goes.Tokens[at:min(at+maxChain/2, blocks)]
		l.Apply(&events.Batch{Events: []events.Event{e}})
	}
	r.apply("own", store(hashes(400001), nil, sequence(11, 14), 4))
	if l.space == 0 || len(l.groups) < 2*slabRecords {
		t.Fatalf("space %d with %d groups: the test proves nothing", l.space, len(l.groups))
	}
	l.Apply(&events.Batch{Events: []events.Event{{Kind: events.Removed, Hashes: goes.Hashes}}})
	r.apply("own", store(hashes(300001), nil, sequence(11, 14), 4))
	r.held("own", span(11, 15), 4)
	r.apply("own", remove(400001))
	r.held("own", span(11, 15), 4)
	r.apply("own", remove(300001))
	r.held("own", span(11, 15), 0)
}
