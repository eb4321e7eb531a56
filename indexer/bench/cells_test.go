package bench

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"
)

// What wide must answer follows from how it is made: so many holders of 64 blocks, one of which has 16 more.
func TestWide(t *testing.T) {
	holders := WideHolders
	if testing.Short() { // the race detector takes its time
		holders = 64
	}
	for _, own := range []bool{false, true} {
		r, err := wide(context.Background(), holders, Options{OwnHashes: own, Reps: 1})
		if err != nil {
			t.Fatal(err)
		}
		shared, tail := 64*holders, 64*holders+16
		for name, depth := range map[string]int{"shared": shared, "shared_match": shared, "tail": tail, "tail_match": tail} {
			c := r.Cells[name]
			if c.N != 2000 || c.DepthSum != 2000*depth || c.Matched != 2000*holders || c.P50 <= 0 || c.P99 < c.P50 {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if holders == WideHolders && (r.ExtraHolder <= 0 || r.TailBlock <= r.ExtraHolder) {
			t.Errorf("%v bytes for one more holder, %v for a block that one has", r.ExtraHolder, r.TailBlock)
		}
	}
}

func TestBeside(t *testing.T) {
	defer goleak.VerifyNone(t)
	p := smallPinned(t)
	r, err := Beside(context.Background(), p, Options{Reps: 2})
	if err != nil {
		t.Fatal(err)
	}
	if r.Idle.P50 <= 0 || r.Busy.P50 <= 0 || r.Ratio <= 0 || r.Writes <= 0 {
		t.Errorf("%+v", r)
	}
	for _, c := range p.Cells {
		if c.Name == "h8" && (r.Busy.DepthSum != c.Want.DepthSum || r.Idle.Matched != c.Want.Matched) {
			t.Errorf("%+v, want %+v", r, c.Want)
		}
	}
}

// A wrong answer beside the writer is found out.
func TestBeside_WrongAnswer(t *testing.T) {
	p := smallPinned(t)
	for i := range p.Cells {
		p.Cells[i].Want.DepthSum++
	}
	if _, err := Beside(context.Background(), p, Options{}); !errors.Is(err, ErrWrong) {
		t.Errorf("error %v, want %v", err, ErrWrong)
	}
}

func TestGC(t *testing.T) {
	defer goleak.VerifyNone(t)
	p := smallPinned(t)
	r, err := GC(context.Background(), p, Options{Reps: 3})
	if err != nil {
		t.Fatal(err)
	}
	if r.HolderBlocks != p.Resident || r.Heap <= 0 || r.Forced.Cycles != 3 || r.Natural.Cycles < 3 {
		t.Errorf("%+v", r)
	}
	for _, c := range []GCCycles{r.Forced, r.Natural} { // everything stops at least once in a cycle
		if c.Pauses < 3 || c.PauseP99 <= 0 || c.PauseMax < c.PauseP99 || c.CPU <= 0 || c.CPU > 1 {
			t.Errorf("%+v", c)
		}
	}
	if r.Forced.Millis <= 0 || r.Natural.P50 <= 0 || r.Natural.P99 < r.Natural.P50 {
		t.Errorf("%+v", r)
	}
}

func TestGC_Cancelled(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := GC(ctx, smallPinned(t), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}
