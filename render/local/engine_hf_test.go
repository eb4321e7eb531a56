//go:build hftokenizers

package local

import (
	"runtime"
	"slices"
	"testing"
)

// TestRenderer_SecondEngine renders what the first engine refuses (TestRenderer_FirstEngineRefuses), and swaps it.
func TestRenderer_SecondEngine(t *testing.T) {
	r := load(t, files(t, wordLevel, plain))
	if got := render1(t, r, "b a  b c"); !slices.Equal(got, []uint32{2, 1, 2, 0}) {
		t.Errorf("got %v", got)
	}
	if err := r.Swap(files(t, letters(), plain)); err != nil {
		t.Fatal(err)
	}
	runtime.GC() // frees the old one
	if got := render1(t, r, "b a"); !slices.Equal(got, []uint32{1, 26, 0}) {
		t.Errorf("after the swap: %v", got)
	}
}

// render1 renders a chat of one message.
func render1(t *testing.T, r *Renderer, content string) []uint32 {
	t.Helper()
	res, err := r.Render(t.Context(), saying(content))
	if err != nil {
		t.Fatal(err)
	}
	return res.Prompts[0].Tokens
}
