package ingest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/kvscout/kvscout/events"
)

// of is a payload of a batch that names a rank.
func of(t *testing.T, rank int, payload []byte) []byte {
	t.Helper()
	var batch []any
	if err := msgpack.Unmarshal(payload, &batch); err != nil {
		t.Fatal(err)
	}
	batch[2] = rank
	b, err := msgpack.Marshal(batch)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Invariant 8: a description of which one rank cannot be opened changes nothing, neither of the ranks that it leaves as they
// are nor of those that it describes otherwise; each goes on with its next number.
func TestRegister_AllOrNothing(t *testing.T) {
	r := newRig(t, Options{})
	before := worker("w", "m", 2)
	r.register(before)
	r.push("w", 0, 0, stores(t, 1, 2))
	r.push("w", 1, 0, stores(t, 1, 2))
	if _, err := r.index.Open(events.Source{Worker: "w", Rank: 2, Model: "m"}); err != nil { // by somebody else
		t.Fatal(err)
	}
	changed := worker("w", "m", 3)
	changed.Sources[1].Topic = "kv"
	if replaced, err := r.fleet.Register(changed); !errors.Is(err, ErrTaken) || replaced {
		t.Fatalf("got %v, %v", replaced, err)
	}
	r.fleet.Discovered(update(found("w", "m", 3)))
	for rank := range 2 {
		if p := r.push("w", rank, 1, stores(t, 3, 1)); p.Applied != 1 || p.Resets != 0 || len(p.Gaps) != 0 {
			t.Errorf("rank %d: %+v", rank, p)
		}
	}
	if diff := cmp.Diff(map[string]int{"w/0": 8, "w/1": 8, "w/2": 0}, r.held("m", 1, 2)); diff != "" {
		t.Error(diff)
	}
	want, err := before.normalise()
	if err != nil {
		t.Fatal(err)
	}
	if got, known := r.fleet.Worker("w"); !known || !got.equal(want) {
		t.Errorf("the worker is described as %+v, %v", got, known)
	}
}

// A worker that cannot be opened at all is not known.
func TestRegister_NothingOfANewWorker(t *testing.T) {
	r := newRig(t, Options{})
	if _, err := r.index.Open(events.Source{Worker: "w", Rank: 1, Model: "m"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.fleet.Register(worker("w", "m", 2)); !errors.Is(err, ErrTaken) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"w/1": 0}, r.held("m", 1, 2)); diff != "" {
		t.Error(diff)
	}
	if _, known := r.fleet.Worker("w"); known {
		t.Error("the worker is known")
	}
}

// A rank that another rank's batches have named is its own stream's once it is described, and stays out when it has left.
func TestRegister_RankOnTheWire(t *testing.T) {
	r := newRig(t, Options{})
	r.register(worker("w", "m", 1))
	r.push("w", 0, 0, of(t, 1, stores(t, 1, 2)))
	r.push("w", 0, 1, of(t, 0, stores(t, 1, 2)))
	if diff := cmp.Diff(map[string]int{"w/0": 8, "w/1": 8}, r.held("m", 1, 2)); diff != "" {
		t.Fatal(diff)
	}
	r.register(worker("w", "m", 2))
	if diff := cmp.Diff(map[string]int{"w/0": 8, "w/1": 0}, r.held("m", 1, 2)); diff != "" {
		t.Error(diff)
	}
	r.push("w", 0, 2, of(t, 1, stores(t, 1, 2)))
	r.push("w", 1, 0, stores(t, 1, 1))
	if diff := cmp.Diff(map[string]int{"w/0": 8, "w/1": 4}, r.held("m", 1, 2)); diff != "" {
		t.Error(diff)
	}
	if l, _ := r.index.Find("w", 0); l.Rejected(events.ReasonRankUnknown) != 1 {
		n := l.Rejected(events.ReasonRankUnknown)
		t.Errorf("%d batches were rejected for their rank", n)
	}
	one := 1
	r.fleet.Deregister("w", &one)
	r.push("w", 0, 3, of(t, 1, stores(t, 1, 2)))
	if diff := cmp.Diff(map[string]int{"w/0": 8}, r.held("m", 1, 2)); diff != "" {
		t.Error(diff)
	}
}
