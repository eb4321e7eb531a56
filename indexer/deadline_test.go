package indexer

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/kvscout/kvscout/events"
)

// ticking is a context that ends after so many looks at it, and counts them.
type ticking struct {
	context.Context
	after, looks int
}

func (c *ticking) Err() error {
	if c.looks++; c.looks > c.after {
		return context.DeadlineExceeded
	}
	return nil
}

// longPrompt is an index in which two sources hold a prompt of a million tokens.
func longPrompt(t *testing.T, size int) (*Index, []uint32) {
	t.Helper()
	const tokens, most = 1 << 20, 4096 // blocks in a store
	prompt := sequence(1, tokens)
	x := New(Options{})
	for _, spec := range []events.SpecKind{events.SpecUnset, events.SpecFull} {
		l, err := x.Open(events.Source{Worker: fmt.Sprint(spec), Engine: events.EngineVLLM, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < tokens/size; at += most {
			e := dense(uint64(at)+1, 0, prompt[at*size:min(tokens, (at+most)*size)], size)
			if at > 0 {
				e.HasParent, e.Parent = true, events.HashInt(uint64(at))
			}
			e.HasGroup, e.Spec = spec != events.SpecUnset, spec
			l.Apply(&events.Batch{Events: []events.Event{e}})
		}
	}
	return x, prompt
}

// Case 159: a lookup of a million tokens looks at its deadline every thousand blocks, and ends with the look at which it is
// over, wherever that is.
func TestLookup_Case159_LongPromptEndsInTime(t *testing.T) {
	for _, size := range []int{1, 16} {
		x, prompt := longPrompt(t, size)
		q := Query{Model: "m", Tokens: prompt}
		for name, ask := range map[string]func(ctx context.Context) error{
			"lookup":   func(ctx context.Context) error { _, err := x.Lookup(ctx, q); return err },
			"holdings": func(ctx context.Context) error { _, err := x.Holdings(ctx, q); return err },
			"holders":  func(ctx context.Context) error { _, err := x.NewReader().Holders(ctx, &q); return err },
		} {
			whole := &ticking{Context: context.Background(), after: 1 << 30}
			if err := ask(whole); err != nil {
				t.Fatalf("%s, size %d: %v", name, size, err)
			}
			blocks := len(prompt) / size
			if least := blocks / (checkEvery + checkEvery/4); whole.looks < least {
				t.Errorf("%s: %d looks at the deadline in %d blocks, want at least %d", name, whole.looks, blocks, least)
			}
			for _, after := range []int{0, 1, whole.looks / 2, whole.looks - 1} {
				c := &ticking{Context: context.Background(), after: after}
				if err := ask(c); !errors.Is(err, context.DeadlineExceeded) || c.looks != after+1 {
					t.Errorf("%s, size %d: over at look %d: %v after %d", name, size, after+1, err, c.looks)
				}
			}
		}
		// The reader whose lookup was cut short answers the next one in full.
		r := x.NewReader()
		if _, err := r.Lookup(&ticking{Context: context.Background(), after: 3}, &q); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("size %d: %v", size, err)
		}
		list, err := r.Lookup(context.Background(), &q)
		if err != nil || len(list) != 2 || list[0].Held != len(prompt) || list[1].Held != len(prompt) {
			t.Errorf("size %d, next: %+v, %v", size, list, err)
		}
	}
}
