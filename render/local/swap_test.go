package local

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvscout/kvscout/render"
)

// ids renders a chat of one letter.
func ids(t testing.TB, r *Renderer) []uint32 {
	t.Helper()
	res, err := r.Render(t.Context(), saying("a"))
	if err != nil {
		t.Fatal(err)
	}
	return res.Prompts[0].Tokens
}

// TestRenderer_HotSwap: changed files are put into use as a whole. Bad ones leave the old in use, and it is said.
func TestRenderer_HotSwap(t *testing.T) {
	dir := files(t, letters(), plain)
	r := load(t, dir)
	first := r.Report().Fingerprint
	if tried, _ := r.reload(); tried {
		t.Error("unchanged files are loaded again")
	}
	write(t, dir, "chat_template.jinja", `b`+plain)
	if tried, err := r.reload(); !tried || err != nil {
		t.Fatalf("tried %v, %v", tried, err)
	}
	if got := ids(t, r); !slices.Equal(got, []uint32{1, 0}) || r.Version() != 2 || r.Report().Fingerprint == first {
		t.Errorf("after the swap: %v, version %d, %+v", got, r.Version(), r.Report())
	}
	for name, text := range map[string]string{"chat_template.jinja": `{% if %}`, "tokenizer.json": `{"model":`} {
		write(t, dir, name, text)
		if tried, err := r.reload(); !tried || !errors.Is(err, render.ErrUnusable) {
			t.Errorf("%s: tried %v, %v", name, tried, err)
		}
		if tried, _ := r.reload(); tried {
			t.Errorf("%s: bad files are tried again though nothing changed", name)
		}
		if got := ids(t, r); !slices.Equal(got, []uint32{1, 0}) || r.Ready() != nil || r.Version() != 2 || r.Report().Fault == nil {
			t.Errorf("%s: old files are not in use: %v, %+v", name, got, r.Report())
		}
	}
	write(t, dir, "chat_template.jinja", `c`+plain)
	write(t, dir, "tokenizer.json", letters())
	if _, err := r.reload(); err != nil || !slices.Equal(ids(t, r), []uint32{2, 0}) || r.Report().Fault != nil || r.Report().Loads != 3 {
		t.Errorf("good files again: %v, %+v", err, r.Report())
	}
	other := files(t, letters(), `d`+plain)
	if err := r.Swap(t.TempDir()); !errors.Is(err, render.ErrUnusable) || !slices.Equal(ids(t, r), []uint32{2, 0}) {
		t.Errorf("swapped for nothing: %v", err)
	}
	if err := r.Swap(other); err != nil || !slices.Equal(ids(t, r), []uint32{3, 0}) {
		t.Errorf("not swapped: %v", err)
	}
}

// TestRenderer_SwapUnderLoad: every render is one of the one model or of the other, never a mixture and never an error.
func TestRenderer_SwapUnderLoad(t *testing.T) {
	one := files(t, letters(), `b`+plain)
	// A token of its own for "ba": the same text, other ids.
	two := files(t, strings.Replace(strings.Replace(letters(), `"merges":[]`, `"merges":["b a"]`, 1), `"vocab":{`, `"vocab":{"ba":27,`, 1), `b`+plain)
	r := load(t, one)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { // ended by cancel, waited for below
			for ctx.Err() == nil {
				res, err := r.Render(t.Context(), saying("a"))
				if err != nil {
					t.Error(err)
					return
				}
				if got := res.Prompts[0].Tokens; !slices.Equal(got, []uint32{1, 0}) && !slices.Equal(got, []uint32{27}) {
					t.Errorf("mixture %v", got)
					return
				}
			}
		})
	}
	for i := range 20 {
		if err := r.Swap([]string{two, one}[i%2]); err != nil {
			t.Error(err)
		}
	}
	cancel()
	wg.Wait()
}

// TestRenderer_Watch tells of each outcome and ends with its context.
func TestRenderer_Watch(t *testing.T) {
	dir := files(t, letters(), plain)
	r := load(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan error, 16)
	done := make(chan struct{})
	go func() { // ended by cancel, waited for below
		defer close(done)
		r.Watch(ctx, time.Millisecond, func(err error) { told <- err })
	}()
	defer func() { cancel(); <-done }()
	for _, step := range []struct {
		template string
		want     error
	}{{`{% bad %}`, render.ErrUnusable}, {`b` + plain, nil}} {
		write(t, dir, "chat_template.jinja", step.template)
		select {
		case err := <-told:
			if !errors.Is(err, step.want) {
				t.Errorf("%s: %v, want %v", step.template, err, step.want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: nothing is told", step.template)
		}
	}
	if got := ids(t, r); !slices.Equal(got, []uint32{1, 0}) {
		t.Errorf("got %v", got)
	}
}
