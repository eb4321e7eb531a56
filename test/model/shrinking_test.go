package model

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// deaf hears no removal.
func deaf(b events.Batch) events.Batch {
	b.Events = slices.DeleteFunc(slices.Clone(b.Events), func(e events.Event) bool { return e.Kind == events.Removed })
	return b
}

// An index that hears of no removal is found out, and what shows it is a store and a removal.
func TestShrink_LeavesStoreAndRemoval(t *testing.T) {
	s := wideScript(1, shapes[0], 60)
	out := misheard(s, deaf)
	if !out.failed() || out.at == len(s.Ops) {
		t.Fatalf("an index that is deaf to removals was not found out: %+v", out)
	}
	s.Ops = s.Ops[:out.at+1]
	fails := func(s *script) bool { return misheard(s, deaf).failed() }
	least := shrink(*s, fails, time.Minute)
	if !fails(&least) || play(&least).failed() {
		t.Errorf("the fault is no longer in:\n%v", least.String())
	}
	kinds := []events.Kind{}
	for _, o := range least.Ops {
		for _, e := range o.Batch.Events {
			kinds = append(kinds, e.Kind)
		}
	}
	if !slices.Equal(kinds, []events.Kind{events.Stored, events.Removed}) {
		t.Errorf("%d operations are left of %d:\n%v", len(least.Ops), len(s.Ops), least.String())
	}
}

func TestReduce(t *testing.T) {
	list := make([]int, 100)
	for i := range list {
		list[i] = i
	}
	reduce(list, func(left []int) bool {
		if !slices.Contains(left, 17) || !slices.Contains(left, 80) {
			return false
		}
		list = left
		return true
	})
	if !slices.Equal(list, []int{17, 80}) {
		t.Errorf("left are %v", list)
	}
}

// A script that was written is read as the same.
func TestScript_File(t *testing.T) {
	for _, s := range []*script{wideScript(2, shapes[0], 60), kindsScript(3, 200, 30)} {
		path, err := s.write(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		got, err := readScript(path)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != s.String() || !reflect.DeepEqual(got.Sources, s.Sources) || got.MaxOrphans != s.MaxOrphans {
			t.Errorf("the script differs from its file")
		}
		if out := play(&got); out.failed() || out.credited != play(s).credited {
			t.Errorf("the script plays differently from its file: %+v", out)
		}
	}
}

// two is a script of one source that stores one block before readers begin, and the prompt of two.
func two() *script {
	store := events.Event{Kind: events.Stored, BlockSize: 4, Hashes: []events.Hash{events.HashInt(1)}, Tokens: []uint32{1, 2, 3, 4}}
	return &script{
		MaxOrphans: 16,
		Beside:     true,
		Sources:    []events.Source{{Worker: "w", Engine: events.EngineVLLM, Model: "m"}},
		Ops: []op{{Early: true, step: step{Batch: events.Batch{Events: []events.Event{store}}},
			Asks: []ask{{Query: indexer.Query{Model: "m", Tokens: []uint32{1, 2, 3, 4, 5, 6, 7, 8}}}}}},
	}
}

// Readers beside writers find out an index that claims more than was ever held, or less than is held all the time.
func TestBeside_FindsOut(t *testing.T) {
	if out := play(two()); out.failed() {
		t.Fatalf("%+v", out)
	}
	for want, mishear := range map[string]func(events.Batch) events.Batch{
		"held 8, reusable 4, ever 4": func(b events.Batch) events.Batch {
			e := b.Events[0]
			e.Hashes, e.Tokens = append(slices.Clone(e.Hashes), events.HashInt(2)), []uint32{1, 2, 3, 4, 5, 6, 7, 8}
			return events.Batch{Events: []events.Event{e}}
		},
		"held 0, at least 4 all the time": func(events.Batch) events.Batch { return events.Batch{} },
	} {
		out := misheard(two(), mishear)
		if !slices.ContainsFunc(out.faults, func(f string) bool { return strings.Contains(f, want) }) {
			t.Errorf("%q is not among %q", want, out.faults)
		}
	}
}
