package latency_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/scorer/latency"
)

// Every duration is in the one bucket whose bounds hold it, and buckets meet without hole or overlap.
func TestHistogram_Buckets(t *testing.T) {
	ends := map[time.Duration]bool{}
	for d := time.Duration(1); d < 80*time.Second; d += d/64 + 1 {
		var h latency.Histogram
		h.Add(d)
		c := h.Counts()
		if len(c.Buckets) != 1 || c.Buckets[0].Count != 1 || c.Sum != d {
			t.Fatalf("%v: %+v", d, c)
		}
		b := c.Buckets[0]
		if d < b.Lower || b.Upper != 0 && d >= b.Upper {
			t.Fatalf("%v is in %+v", d, b)
		}
		if b.Lower > 0 && b.Upper > 0 && float64(b.Upper-b.Lower) > 0.25*float64(b.Lower) {
			t.Fatalf("%+v is wider than a quarter of its lower end", b)
		}
		ends[b.Upper] = true
		if b.Lower > 0 && !ends[b.Lower] {
			t.Fatalf("no bucket ends where %+v begins", b)
		}
	}
	if len(ends) != 106 { // 26 doublings by 4, one below, one above
		t.Errorf("%d buckets", len(ends))
	}
	var h latency.Histogram
	h.Add(-time.Second)
	want := latency.Counts{Buckets: []latency.Bucket{{Upper: 1024, Count: 1}}}
	if diff := cmp.Diff(want, h.Counts()); diff != "" {
		t.Errorf("negative (-want +got):\n%s", diff)
	}
}

// Quantiles are within a fifth of those of the sorted durations.
func TestCounts_Quantile(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var h latency.Histogram
	var all []time.Duration
	var sum time.Duration
	for range 20_000 {
		d := time.Duration(float64(100*time.Microsecond) * (1 + 3*random.ExpFloat64()))
		all, sum = append(all, d), sum+d
		h.Add(d)
	}
	slices.Sort(all)
	c := h.Counts()
	for _, q := range []float64{0.001, 0.1, 0.5, 0.9, 0.99, 0.999} {
		want, got := all[int(q*float64(len(all)))], c.Quantile(q)
		if ratio := float64(got) / float64(want); ratio < 0.8 || ratio > 1.2 {
			t.Errorf("quantile %v: %v, sorted %v", q, got, want)
		}
	}
	if c.Total() != 20_000 || c.Mean() != sum/20_000 {
		t.Errorf("%d durations of mean %v, want %v", c.Total(), c.Mean(), sum/20_000)
	}
	var none latency.Counts
	if none.Quantile(0.5) != 0 || none.Mean() != 0 || none.Total() != 0 {
		t.Error("nothing has a quantile or mean")
	}
	long := latency.Counts{Buckets: []latency.Bucket{{Lower: time.Minute, Count: 3}}}
	if got := long.Quantile(0.99); got != time.Minute {
		t.Errorf("without an upper end: %v", got)
	}
}

func TestCounts_Sub(t *testing.T) {
	var h latency.Histogram
	h.Add(time.Millisecond)
	h.Add(time.Second)
	before := h.Counts()
	h.Add(time.Second)
	h.Add(time.Microsecond)
	got := h.Counts().Sub(before)
	want := latency.Counts{Sum: time.Second + time.Microsecond, Buckets: []latency.Bucket{
		{Upper: 1024, Count: 1}, {Lower: 7 << 27, Upper: 1 << 30, Count: 1}, // 2^29..2^30 ns in four parts
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("since (-want +got):\n%s", diff)
	}
	var fresh latency.Histogram // the process began anew
	fresh.Add(time.Second)
	if diff := cmp.Diff(fresh.Counts(), fresh.Counts().Sub(h.Counts())); diff != "" {
		t.Errorf("anew (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(fresh.Counts(), fresh.Counts().Sub(latency.Counts{})); diff != "" {
		t.Errorf("from nothing (-want +got):\n%s", diff)
	}
}

func TestHistogram_Concurrent(t *testing.T) {
	var h latency.Histogram
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() { // ends after its durations, waited for below
			for i := range 1000 {
				h.Add(time.Duration(n*1000+i) * time.Microsecond)
			}
		})
	}
	for range 100 {
		if n := h.Counts().Total(); n > 4000 {
			t.Errorf("%d durations", n)
		}
	}
	wg.Wait()
	if n := h.Counts().Total(); n != 4000 {
		t.Errorf("%d durations, want 4000", n)
	}
	if n := testing.AllocsPerRun(100, func() { h.Since(time.Now()) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHistogram_Since(b *testing.B) {
	var h latency.Histogram
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			h.Since(time.Now())
		}
	})
}
