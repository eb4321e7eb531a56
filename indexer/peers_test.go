package indexer_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/kvscout/kvscout/events"
)

// The tests here are what other indexes were seen to answer wrong, with the right answers.

// A lookup that looks at every 32nd block only (Dynamo's PositionalIndexer, by default) credits what lies behind a hole.
func TestPeers_HolesBetweenStrides(t *testing.T) {
	const blocks = 130
	s := newSite(t, blocks+2)
	want := map[int]int{}
	for i := range s.l { // source i lacks block i; the last two lack none, and two
		s.apply(i, stored(1, 0, blocks))
		want[i] = blocks
		if i < blocks {
			s.apply(i, removed(1, i, i+1))
			want[i] = i
		}
	}
	s.apply(blocks+1, removed(1, 33, 34), removed(1, 65, 66))
	want[blocks+1] = 33
	s.want(1, blocks, want)
	for i := range blocks + 1 { // without the wide company
		one := newSite(t, 1)
		one.apply(0, stored(1, 0, blocks))
		if i < blocks {
			one.apply(0, removed(1, i, i+1))
		}
		one.want(1, blocks, map[int]int{0: i})
	}
}

// A lookup that compares numbers of holders and goes on where they are equal (Dynamo's ConcurrentRadixTreeCompressed)
// takes one holder for another: w0 lost a block early, w1 ends at 8, and w1 is credited with all of w0's.
func TestPeers_AsManyHoldersAreNotTheSame(t *testing.T) {
	for gone := range 64 {
		s := newSite(t, 2)
		for from := 0; from < 64; from += 8 {
			s.apply(0, stored(1, from, from+8))
		}
		s.apply(1, stored(1, 0, 8))
		s.apply(0, removed(1, gone, gone+1))
		s.want(1, 64, map[int]int{0: gone, 1: 8})
	}
}

// An index that takes a removal from the middle for the end of the prompt (Dynamo's RadixTree and
// ConcurrentRadixTreeCompressed) forgets blocks that the engine still has.
func TestPeers_RemovedAndRefilled(t *testing.T) {
	for _, hole := range [][2]int{{10, 11}, {0, 1}, {0, 8}, {31, 33}, {63, 64}} {
		t.Run(fmt.Sprint(hole), func(t *testing.T) {
			for _, others := range []int{0, 3, 300} { // who hold the same
				s := newSite(t, 1+others)
				want := map[int]int{}
				for i := range s.l {
					s.apply(i, stored(1, 0, 64))
					want[i] = 64
				}
				s.apply(0, removed(1, hole[0], hole[1]))
				want[0] = hole[0]
				s.want(1, 64, want)
				s.apply(0, stored(1, hole[0], hole[1]))
				want[0] = 64
				s.want(1, 64, want)
			}
		})
	}
}

// An index that keeps ten holders of a block (llm-d-kv-cache, by default) loses the others.
func TestPeers_MoreThanTenHolders(t *testing.T) {
	for _, n := range []int{9, 10, 11, 12, 100, 1500} {
		s := newSite(t, n)
		want := map[int]int{}
		for i := range n {
			s.apply(i, stored(1, 0, 4+i%5))
			want[i] = 4 + i%5
		}
		s.want(1, 8, want)
	}
}

// An index whose memory follows what was ever stored (Dynamo's PositionalIndexer, and ConcurrentRadixTreeCompressed
// until it sweeps) is as large with caches of 300 blocks as with 4,000: 33 and 36 MB, 11 and 15 MB, on a trace after which
// SMG's RadixTree takes 0.5 and 4.0 MB.
func TestPeers_MemoryFollowsResidents(t *testing.T) {
	const sources, turns, length = 16, 400, 48
	heap := make(map[int]int)
	for _, capacity := range []int{4000, 1000, 300} {
		s := newSite(t, sources)
		keep := capacity / length
		for turn := range turns {
			for i := range s.l { // the oldest prompts go, from their ends
				s.apply(i, stored(turn*sources+i, 0, length))
				if old := turn - keep; old >= 0 {
					for at := length; at > 0; at -= 8 {
						s.apply(i, removed(old*sources+i, at-8, at))
					}
				}
			}
		}
		resident := s.x.Stats().HolderBlocks
		if want := sources * keep * length; resident != want {
			t.Fatalf("%d blocks are resident, want %d", resident, want)
		}
		with := liveHeap()
		runtime.KeepAlive(s)
		s = nil
		churned := with - liveHeap() // not what it grew by: what earlier tests left may have gone meanwhile

		fresh := newSite(t, sources)
		for turn := turns - keep; turn < turns; turn++ {
			for i := range fresh.l {
				fresh.apply(i, stored(turn*sources+i, 0, length))
			}
		}
		with = liveHeap()
		runtime.KeepAlive(fresh)
		new := with - liveHeap()
		t.Logf("capacity %d: %d blocks, %d bytes of heap, %d without the history", capacity, resident, churned, new)
		if churned > 2*new+100_000 {
			t.Errorf("capacity %d: %d bytes of heap after %d blocks were stored, %d if only those held were", capacity, churned,
				turns*sources*length, new)
		}
		heap[capacity] = churned
	}
	if heap[300] > heap[4000]/3 {
		t.Errorf("%d bytes of heap hold a tenth of what %d do", heap[300], heap[4000])
	}
}

// A refused event that is only written to a log (Dynamo's pools) leaves nobody to ask: a store without its parent is
// seen among the counts, and is no longer when the parent comes.
func TestPeers_MissingParentIsSeen(t *testing.T) {
	s := newSite(t, 1)
	s.apply(0, stored(1, 8, 16))
	if st := s.l[0].Stats(); st.OrphanStores != 1 || st.OrphanBlocks != 8 {
		t.Errorf("%d stores of %d blocks wait, want 1 of 8", st.OrphanStores, st.OrphanBlocks)
	}
	s.apply(0, stored(1, 0, 8))
	s.want(1, 16, map[int]int{0: 16})
	s.apply(0, events.Event{Kind: events.Stored, BlockSize: size, Hashes: []events.Hash{name(2, 0)}, Tokens: []uint32{1}})
	if st := s.l[0].Stats(); st.OrphanStores != 0 || sum(st.Rejected[:]) != 1 {
		t.Errorf("%d stores wait, rejected are %v", st.OrphanStores, st.Rejected)
	}
	if m := s.x.Stats(); m.Blocks != 16 {
		t.Errorf("%d blocks, want 16", m.Blocks)
	}
}

func sum(list []uint64) (n uint64) {
	for _, v := range list {
		n += v
	}
	return n
}

// liveHeap is what the heap holds, in bytes, when nothing more can be freed.
func liveHeap() int {
	var m runtime.MemStats
	for last := uint64(math.MaxUint64); ; last = m.HeapAlloc {
		runtime.GC()
		if runtime.ReadMemStats(&m); m.HeapAlloc+1024 >= last { // what a cleanup lets go the next cycle frees
			return int(m.HeapAlloc)
		}
	}
}
