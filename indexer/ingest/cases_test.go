package ingest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
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

// Case 97: a restored source goes on behind the number of its last batch, not behind the number of blocks that it got back,
// and what follows is nothing special.
func TestCase97_GoesOnBehindTheNumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	r := newRig(t, Options{})
	r.register(worker("w", "m", 1))
	for seq := range uint64(41) {
		r.push("w", 0, seq, stores(t, 1+int(seq)%3, 1)) // of 3 blocks
	}
	k, _ := r.keeper(path)
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	n, _ := restarted(t, path, worker("w", "m", 1))
	if got := n.index.Stats().HolderBlocks; got != 3 {
		t.Fatalf("%d blocks restored", got)
	}
	for seq := uint64(41); seq <= 42; seq++ {
		if p := n.push("w", 0, seq, stores(t, int(seq), 1)); p.Applied != 1 || len(p.Gaps) != 0 || p.Resets != 0 {
			t.Errorf("batch %d: %+v", seq, p)
		}
	}
	if got := n.index.Stats().HolderBlocks; got != 5 {
		t.Errorf("%d blocks", got)
	}
}

// Case 107: nothing held, nothing known and nothing heard for a while are three answers.
func TestCase107_NoDataIsNotZero(t *testing.T) {
	r := newRig(t, Options{})
	for _, id := range []string{"synced", "silent", "lost"} {
		r.register(worker(id, "m", 1))
	}
	r.push("synced", 0, 0, stores(t, 50, 1))
	r.push("lost", 0, 0, stores(t, 1, 2))
	r.fleet.workers["lost"].sources[0].writer.State(events.StateStale, errors.New("no connection for 5m"))
	q := indexer.Query{Model: "m", Tokens: []uint32{1, 1, 1, 1, 2, 2, 2, 2}}
	matches, err := r.index.Lookup(context.Background(), q)
	if err != nil || len(matches) != 3 {
		t.Fatalf("%v, %v", matches, err)
	}
	for _, m := range matches {
		ok := false
		switch f := m.Freshness; m.Source.Worker {
		case "synced":
			ok = m.Held == 0 && m.Bound.Kind == indexer.Exact && f.State == events.StateLive && f.HasSequence
		case "silent":
			ok = m.Held == 0 && m.Bound.Kind == indexer.Lower && f.State == events.StateUnknown && !f.HasSequence
		case "lost":
			ok = m.Held == 8 && m.Bound.Doubt&indexer.DoubtStale != 0 && f.State == events.StateStale && f.Why != "" && !f.LastEvent.IsZero()
		}
		if !ok {
			t.Errorf("%s: %+v", m.Source.Worker, m)
		}
	}
}
