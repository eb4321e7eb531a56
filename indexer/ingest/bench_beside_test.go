package ingest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// What is looked up beside the sources that change all the time: a prompt of heldBlocks, of which each of heldWorkers holds
// another part.
const (
	heldWorkers = 64
	heldBlocks  = 512
)

// benchFill lets workers hold their parts of a prompt by Publish, and returns the keys of the whole prompt.
func benchFill(b *testing.B, fleet *Fleet) []indexer.Key {
	tokens := make([]uint32, heldBlocks*benchTokens)
	hashes := make([]uint64, heldBlocks)
	for i := range tokens {
		tokens[i] = uint32(1<<24 + i)
	}
	for i := range hashes {
		hashes[i] = uint64(i + 1)
	}
	for w := range heldWorkers {
		id := fmt.Sprintf("held-%d", w)
		if _, err := fleet.Register(Worker{ID: id, Model: "m", Sources: []events.Source{{Worker: id, Engine: events.EngineVLLM}}}); err != nil {
			b.Fatal(err)
		}
		n := heldBlocks * (w + 1) / heldWorkers
		payload := benchStore(b, hashes[:n], tokens[:n*benchTokens])
		got, err := fleet.Publish(id, 0, []events.Message{{Payload: payload}})
		if err != nil || got.Applied != 1 {
			b.Fatalf("%+v, %v", got, err)
		}
	}
	return indexer.Keys(tokens, nil, benchTokens, false, indexer.Namespace{})
}

// BenchmarkLookupsBeside measures lookups with nothing else running, and while 224,000 blocks a second are stored from what
// comes over the network and as many removed, in turn. One operation is a turn of each, of 100 ms.
func BenchmarkLookupsBeside(b *testing.B) {
	const turn, slice, perSlice = 100 * time.Millisecond, time.Millisecond, 7
	x, fleet, ps, conns := benchFleetOf(b)
	r, q := x.NewReader(), indexer.Query{Model: "m", KeySize: benchTokens, Keys: benchFill(b, fleet)}
	all := 0
	for w := range heldWorkers {
		all += benchTokens * (heldBlocks * (w + 1) / heldWorkers)
	}
	lookups := func(h *hdrhistogram.Histogram) {
		for began := time.Now(); time.Since(began) < turn; {
			at := time.Now()
			matches, err := r.Lookup(context.Background(), &q)
			took := time.Since(at)
			held := 0
			for i := range matches {
				held += matches[i].Held
			}
			if err != nil || len(matches) != heldWorkers+benchSources || held != all {
				b.Fatalf("%d matches that hold %d, %v", len(matches), held, err)
			}
			_ = h.RecordValue(int64(took))
		}
	}
	idle, busy := hdrhistogram.New(1, int64(time.Second), 3), hdrhistogram.New(1, int64(time.Second), 3)
	lookups(hdrhistogram.New(1, int64(time.Second), 3)) // warms up
	var ratios []float64
	sent := 0
	publish := func(until time.Time) {
		buf := []byte(nil)
		for due := time.Now(); due.Before(until); due = due.Add(slice) { // what was late is made up for
			time.Sleep(time.Until(due))
			i := sent % benchSources
			buf = buf[:0]
			for range perSlice {
				buf, _ = ps[i].append(buf)
			}
			_, _ = conns[i].Write(buf)
			sent++
		}
	}
	b.ResetTimer()
	for range b.N {
		one, other := hdrhistogram.New(1, int64(time.Second), 3), hdrhistogram.New(1, int64(time.Second), 3)
		lookups(one)
		done := make(chan struct{})
		go func() { defer close(done); publish(time.Now().Add(turn)) }() // ends after a turn, waited for below
		lookups(other)
		<-done
		applied(b, x, sent*perSlice)
		ratios = append(ratios, float64(other.ValueAtQuantile(50))/float64(one.ValueAtQuantile(50)))
		idle.Merge(one)
		busy.Merge(other)
	}
	b.StopTimer()
	slices.Sort(ratios)
	b.ReportMetric(float64(idle.ValueAtQuantile(50)), "idle-ns-p50")
	b.ReportMetric(float64(idle.ValueAtQuantile(99)), "idle-ns-p99")
	b.ReportMetric(float64(busy.ValueAtQuantile(50)), "busy-ns-p50")
	b.ReportMetric(float64(busy.ValueAtQuantile(99)), "busy-ns-p99")
	b.ReportMetric(ratios[len(ratios)/2], "busy:idle-p50")
	b.ReportMetric(float64(sent*perSlice*benchBlocks)/(float64(b.N)*turn.Seconds()), "blocks/s")
	for _, c := range conns {
		c.Close()
	}
}

// applied waits until so many batches of all sources with an endpoint are.
func applied(b *testing.B, x *indexer.Index, want int) {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) { // a poll: the index tells nobody
		got := 0
		for _, l := range x.Ledgers() {
			if st := l.Stats(); st.Connections > 0 {
				got += int(st.Batches)
			}
		}
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("%d batches were applied, want %d", got, want)
		}
	}
}
