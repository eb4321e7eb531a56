package bench_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/bench"
)

// What the index answers for what was published is what the workload says, by every protocol.
func TestCallers_RightAnswers(t *testing.T) {
	r := start(t)
	w := r.filled(t, 1030, 8, 4)
	for name, c := range clients() {
		if err := errors.Join(r.calls(t, w, c)...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRun(t *testing.T) {
	r := start(t)
	w := r.filled(t, 64, 2, 1)
	c := bench.Client{Protocol: bench.ProtocolConnect, Callers: 3}
	got := r.run(t, w, c, bench.Load{Warmup: 10 * time.Millisecond, During: time.Second, ServerPID: os.Getpid()})
	if got.Errors != 0 || got.Calls == 0 {
		t.Fatalf("%d calls, %d errors %v: %v", got.Calls, got.Errors, got.Reasons, got.First)
	}
	if got.P50 <= 0 || got.P99 < got.P50 || got.Max < got.P99 || got.Requests <= 0 || got.Seconds < 1 || got.ServerCPU == nil {
		t.Errorf("%+v", got)
	}
	if err := w.Empty(t.Context(), r.api); err != nil {
		t.Fatal(err)
	}
	got = r.run(t, w, c, bench.Load{During: 300 * time.Millisecond})
	if got.Calls != 0 || got.Errors == 0 || got.Reasons["UNKNOWN_MODEL"] != got.Errors || got.First != bench.Refusal("UNKNOWN_MODEL") {
		t.Errorf("%d calls, errors %v: %v", got.Calls, got.Reasons, got.First)
	}
}

// A prompt's holders are the same whatever else is published; a worker that holds the longest prompt is not rated by it.
func TestWorkload_Held(t *testing.T) {
	w, err := bench.New(64*bench.BlockSize, 4, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	// By hand: own depths are 16, 32, 48, 64 of prompt 0 and two workers further of prompt 1; 16 blocks are shared.
	want := [][]int{{256, 512, 768, 1024}, {768, 1024, 256, 512}}
	for p := range want {
		for i, held := range want[p] {
			if got := w.Held(p, i); got != held {
				t.Errorf("worker %d holds %d of prompt %d, want %d", i, got, p, held)
			}
		}
	}
	if w.Best(0) != 3 || w.Best(1) != 1 || w.HolderBlocks() != 4*16+2*(0+16+32+48) {
		t.Errorf("best %d and %d, %d blocks", w.Best(0), w.Best(1), w.HolderBlocks())
	}
	if !slices.Equal(w.Prompts[0][:256], w.Prompts[1][:256]) || slices.Equal(w.Prompts[0][:272], w.Prompts[1][:272]) {
		t.Error("the prompts share something else than their first quarter")
	}
}

// A wrong answer is an error by every protocol: without the best worker each is, and what only a whole check finds is found.
func TestCallers_WrongAnswers(t *testing.T) {
	r := start(t)
	w := r.filled(t, 1024, 4, 1)
	for _, gone := range []int{0, w.Best(0)} {
		req := &kvscoutv1.DeregisterWorkerRequest{WorkerId: w.Worker(gone)}
		if _, err := r.api.DeregisterWorker(t.Context(), connect.NewRequest(req)); err != nil {
			t.Fatal(err)
		}
		for name, c := range clients() {
			for n, err := range r.calls(t, w, c) {
				// Of each caller's calls the first is checked whole, and every answer of a batch to it.
				if first := n%4 == 0; (gone != 0 || first) && !errors.Is(err, bench.ErrWrong) {
					t.Errorf("%s: without worker %d answer %d is %v", name, gone, n, err)
				}
			}
		}
	}
}

// What a server refuses is named by its reason.
func TestCallers_Refusals(t *testing.T) {
	r := start(t)
	w, err := bench.New(64, 1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range clients() {
		for _, err := range r.calls(t, w, c) {
			if err != bench.Refusal("UNKNOWN_MODEL") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Engines publish while calls are answered right; what they publish is applied and seen.
func TestIngest(t *testing.T) {
	r := start(t)
	w := r.filled(t, 1024, 4, 2)
	var calls bench.Report
	got, err := w.Beside(t.Context(), r.api, 20_000, func() error {
		calls = r.run(t, w, bench.Client{Protocol: bench.ProtocolConnect, Callers: 2}, bench.Load{During: time.Second})
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if calls.Errors != 0 || calls.Calls == 0 {
		t.Errorf("%d calls, errors %v: %v", calls.Calls, calls.Reasons, calls.First)
	}
	if got.Blocks <= 0 || got.Blocks > 40_000 || got.LagProbes == 0 || got.LagP50 <= 0 || got.LagP99 < got.LagP50 {
		t.Errorf("%+v", got)
	}
	if w.Writers != 0 {
		t.Errorf("%d engines are left", w.Writers)
	}
	if _, err := w.Beside(t.Context(), r.api, bench.MinIngest-1, nil); !errors.Is(err, bench.ErrWorkload) {
		t.Error(err)
	}
}

// slowCaller takes its time for each call.
type slowCaller struct {
	takes time.Duration
	calls atomic.Int64
}

func (c *slowCaller) Call(context.Context, int) error {
	c.calls.Add(1)
	time.Sleep(c.takes)
	return nil
}

func (c *slowCaller) Close() error { return nil }

// In an open loop a call that begins late, since the one before was slow, counts from when it was due.
func TestRun_OpenLoopTimesFromWhenDue(t *testing.T) {
	c := &slowCaller{takes: 50 * time.Millisecond}
	got := bench.Run(t.Context(), []bench.Caller{c}, bench.Load{During: time.Second, Rate: 100})
	// 20 calls a second are done of 100 that are due: the last of them was due 0.8 s before. By chance it is less.
	if got.Max < 300_000 || got.Calls > 20 {
		t.Errorf("%d calls, the slowest %.0f us", got.Calls, got.Max)
	}
	closed := &slowCaller{takes: 50 * time.Millisecond}
	if got := bench.Run(t.Context(), []bench.Caller{closed}, bench.Load{During: 200 * time.Millisecond}); got.P50 < 50_000 {
		t.Errorf("a call of 50 ms took %.0f us", got.P50)
	}
}

// An open loop does not ask faster than it is told to.
func TestRun_OpenLoopKeepsItsRate(t *testing.T) {
	c := &slowCaller{}
	bench.Run(t.Context(), []bench.Caller{c}, bench.Load{During: time.Second, Rate: 50})
	if n := c.calls.Load(); n < 1 || n > 120 {
		t.Errorf("%d calls in a second, of 50 that were due", n)
	}
}

func TestNew_Refuses(t *testing.T) {
	for _, c := range [][3]int{{15, 1, 1}, {1<<20 + 1, 1, 1}, {16, 0, 1}, {16, 4097, 1}, {16, 1, 0}, {16, 1, 257}} {
		if _, err := bench.New(c[0], c[1], c[2], 1); !errors.Is(err, bench.ErrWorkload) {
			t.Errorf("%v: %v", c, err)
		}
	}
	w, err := bench.New(16, 1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []bench.Client{
		{}, {Callers: bench.MaxCallers + 1}, {Callers: 1, Connections: -1}, {Callers: 1, Form: bench.Form{Batch: bench.MaxBatch + 1}},
		{Callers: 1, Protocol: bench.ProtocolGRPC}, {Callers: 1, Protocol: "x"},
	} {
		if _, _, err := w.Callers(bench.Target{}, c); !errors.Is(err, bench.ErrWorkload) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
