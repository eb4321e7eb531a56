package ingest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/kvscout/kvscout/indexer"
)

// Case 72: what removed workers held is freed at once, its memory too, and as many that come take no more.
func TestCase72_MemoryFollowsTheFleet(t *testing.T) {
	const workers, blocks = 50, 2000
	one := newRig(t, Options{})
	one.register(worker("w0", "m", 1))
	one.push("w0", 0, 0, stores(t, 1, blocks))
	alone := one.index.Stats()

	r := newRig(t, Options{})
	for i := range workers {
		id := fmt.Sprint("w", i)
		r.register(worker(id, "m", 1))
		r.push(id, 0, 0, stores(t, 1+i*blocks, blocks))
	}
	all := r.index.Stats()
	for i := 1; i < workers; i++ {
		r.fleet.Deregister(fmt.Sprint("w", i), nil)
	}
	left := r.index.Stats()
	if left.Blocks != alone.Blocks || left.HolderBlocks != blocks || left.Sources != 1 {
		t.Errorf("left: %+v, one worker alone: %+v", left, alone)
	}
	if most := alone.Bytes + (all.Bytes-alone.Bytes)/6; left.Bytes > most { // slabs that are partly in use
		t.Errorf("%d bytes for all, %d for what is left, want at most %d; one worker alone took %d", all.Bytes, left.Bytes, most, alone.Bytes)
	}
	for i := 1; i < workers; i++ {
		id := fmt.Sprint("next", i)
		r.register(worker(id, "m", 1))
		r.push(id, 0, 0, stores(t, 1+(workers+i)*blocks, blocks))
	}
	if again := r.index.Stats(); again.Bytes > all.Bytes+all.Bytes/10 {
		t.Errorf("%d bytes for all, %d for as many again", all.Bytes, again.Bytes)
	}
	if got := r.held("m", 1, blocks); got["w0/0"] != 4*blocks {
		t.Errorf("the worker that stayed: %d", got["w0/0"])
	}
}

// Case 75: a lookup costs about blocks plus workers, not blocks times workers. With 256 workers that share a prefix it takes
// a small multiple of what it takes with one.
func TestCase75_SharedPrefixOfManyWorkers(t *testing.T) {
	const blocks = 4096
	payload := stores(t, 1, blocks)
	took := func(workers int) time.Duration {
		r := newRig(t, Options{})
		for i := range workers {
			id := fmt.Sprint("w", i)
			r.register(worker(id, "m", 1))
			r.push(id, 0, 0, payload)
		}
		if got := r.held("m", 1, blocks); len(got) != workers || got["w0/0"] != 4*blocks {
			t.Fatalf("%d workers answer, w0 with %d", len(got), got["w0/0"])
		}
		q := indexer.Query{Model: "m"}
		for i := range 4 * blocks {
			q.Tokens = append(q.Tokens, uint32(1+i/4))
		}
		best := time.Hour
		for range 50 { // the best of many: the machine has other work
			began := time.Now()
			if _, err := r.index.Lookup(context.Background(), q); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	one, many := took(1), took(256)
	t.Logf("%d blocks: %v with 1 worker, %v with 256", blocks, one, many)
	if many > 16*one {
		t.Errorf("256 workers take %v, one takes %v", many, one)
	}
}
