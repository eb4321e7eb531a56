package indexer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
)

// Models hold the same prompt under the same hashes, in stripes of their own and in one, and each is answered for itself,
// by a reader that goes from one to the other.
func TestRule03_ModelsShareNothing(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain=%v", plain), func(t *testing.T) {
			x := New(Options{Plain: plain})
			list := openModels(t, x, 4)
			for i := range 4 { // and in each stripe a second model
				list = append(list, openModel(t, x, fmt.Sprint("b", i), beside(list[i].src.Model)))
			}
			const most = 40
			for i, l := range list {
				l.Apply(&benchPrompt(1, most-i, 1)[0])
			}
			q := Query{Tokens: benchTokens(1, most*benchBlock)}
			keys := Query{KeySize: benchBlock, Keys: Keys(q.Tokens, nil, benchBlock, false, Namespace{})}
			r := x.NewReader()
			check := func(without int) {
				t.Helper()
				for round := range 3 {
					for i, l := range list {
						q.Model, keys.Model = l.src.Model, l.src.Model
						want := map[string]int{l.src.Worker: (most - i) * benchBlock}
						if i == without {
							want = map[string]int{}
						}
						if diff := cmp.Diff(want, asked(t, r, &q)); diff != "" {
							t.Fatalf("round %d, %s: (-want +got)\n%s", round, l.src.Model, diff)
						}
						held := make(map[string]int)
						list, err := r.Holders(context.Background(), &keys)
						if err != nil {
							t.Fatal(err)
						}
						for _, h := range list {
							held[x.Source(h.Source).src.Worker] += int(h.Held)
						}
						if diff := cmp.Diff(want, held); diff != "" {
							t.Fatalf("round %d, holders of %s: (-want +got)\n%s", round, l.src.Model, diff)
						}
					}
				}
			}
			check(-1)
			list[1].Close()
			check(1)
			for _, l := range list {
				l.Close()
			}
			if s := x.Stats(); s.Sources+s.Scopes+s.Blocks+s.HolderBlocks != 0 {
				t.Errorf("closed index holds something: %+v", s)
			}
		})
	}
}

// An adapter is found under the models of all stripes.
func TestRule03_AdaptersOverStripes(t *testing.T) {
	x := New(Options{})
	list := openModels(t, x, 3)
	apply := func(l *Ledger, adapter string) {
		e := dense(1, 0, benchTokens(1, benchBlock), benchBlock)
		e.LoraName = adapter
		l.Apply(&events.Batch{Events: []events.Event{e}})
	}
	apply(list[0], "both")
	apply(list[1], "both")
	apply(list[2], "one")
	if m, ok := x.AdapterModel("both"); ok {
		t.Errorf("both is said to be under %s only", m)
	}
	if m, ok := x.AdapterModel("one"); !ok || m != list[2].src.Model {
		t.Errorf("one is under %q, %v", m, ok)
	}
	if !x.HoldsAdapter(list[1].src.Model, "both") || x.HoldsAdapter(list[2].src.Model, "both") {
		t.Error("both is held under the wrong models")
	}
	list[0].Close()
	if m, ok := x.AdapterModel("both"); !ok || m != list[1].src.Model {
		t.Errorf("both is now under %q, %v", m, ok)
	}
}

// A book whose scopes are of a model that the source does not serve is refused: its blocks would lie where nobody looks.
func TestRule03_BooksOfOtherModels(t *testing.T) {
	x := New(Options{})
	list := openModels(t, x, 2)
	list[0].Apply(&benchPrompt(1, 8, 1)[0])
	book := list[0].Export()
	if err := list[1].Restore(book, time.Hour); !errors.Is(err, ErrBook) {
		t.Errorf("error %v, want %v", err, ErrBook)
	}
	if s := list[1].Stats(); s.Handles != 0 {
		t.Errorf("%d handles after a refusal", s.Handles)
	}
}
