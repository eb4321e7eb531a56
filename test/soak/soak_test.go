package soak

import (
	"flag"
	"math"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/indexer"
)

var (
	stepFlag = flag.Duration("soak.step", 700*time.Millisecond, "simulated time from one request to the next")
	seedFlag = flag.Uint64("soak.seed", 1, "what happens")
)

const (
	day    = 24 * time.Hour
	warmUp = 6 // hours
	// flat is how far the means may differ.
	flat = 0.05
	// agree is the factor within which Stats.Bytes tells the heap.
	agree = 1.5
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample is the state of things after an hour.
type sample struct {
	heap  int
	stats indexer.Stats
}

// TestSoak_Rule17_HeapIsFlat is the day.
func TestSoak_Rule17_HeapIsFlat(t *testing.T) {
	base := liveHeap()
	f := newFleet(t, *seedFlag)
	found := make(chan int)
	go func() { found <- f.answer() }() // ends when asks is closed, below; waited for by found
	var samples []sample
	step := *stepFlag
	if testing.Short() { // for the race detector: caches do not even fill
		step = 10 * time.Second
	}
	began := time.Now()
	for now, hour := time.Duration(0), time.Duration(1); now < day; {
		now += step
		f.pass(step)
		if now >= hour*time.Hour {
			s := sample{liveHeap() - base, f.x.Stats()}
			t.Logf("%2d h, after %v: heap %8d, Stats.Bytes %8d, %d blocks, %d scopes, %d blocks of holders", hour,
				time.Since(began).Round(time.Second), s.heap, s.stats.Bytes, s.stats.Blocks, s.stats.Scopes, s.stats.HolderBlocks)
			samples = append(samples, s)
			f.counts()
			hour++
		}
	}
	close(f.asks)
	if <-found == 0 {
		t.Error("no question was ever answered: the test proves nothing")
	}
	if !testing.Short() {
		checkFlat(t, samples[warmUp:])
	}
	checkBytes(t, f, samples[len(samples)-1].stats)
}

// checkFlat compares the first third of the samples with the last.
func checkFlat(t *testing.T, list []sample) {
	t.Helper()
	third := len(list) / 3
	mean := func(list []sample) (sum float64) {
		for _, s := range list {
			sum += float64(s.heap) / float64(s.stats.HolderBlocks) / float64(len(list))
		}
		return sum
	}
	first, last := mean(list[:third]), mean(list[len(list)-third:])
	t.Logf("heap for each block of a holder: %.1f bytes in hours %d to %d, %.1f (%+.1f %%) in the last %d", first, warmUp+1, warmUp+third, last,
		100*(last/first-1), third)
	if last > first*(1+flat) || last < first*(1-flat) {
		t.Errorf("the heap went from %.1f to %.1f bytes for each block of a holder, more than %v %%", first, last, 100*flat)
	}
}

// checkBytes compares what the index says that it takes with what is freed with it, and that nothing is left of closed
// sources.
func checkBytes(t *testing.T, f *fleet, s indexer.Stats) {
	t.Helper()
	with := liveHeap()
	for _, s := range f.list {
		s.ledger.Close()
	}
	if left := f.x.Stats(); left.Sources != 0 || left.Scopes != 0 || left.Blocks != 0 || left.HolderBlocks != 0 {
		t.Errorf("nobody is left, and still %+v", left)
	}
	f.x = nil
	for _, s := range f.list {
		s.ledger = nil
	}
	heap := with - liveHeap()
	runtime.KeepAlive(f)
	t.Logf("Stats.Bytes is %.2f of the index's heap of %d", float64(s.Bytes)/float64(heap), heap)
	if testing.Short() {
		return // what books keep for the next batch, which Stats.Bytes leaves out, is most of it
	}
	if float64(s.Bytes) > agree*float64(heap) || float64(heap) > agree*float64(s.Bytes) {
		t.Errorf("Stats.Bytes is %d, the heap %d, more than a factor of %v", s.Bytes, heap, agree)
	}
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
