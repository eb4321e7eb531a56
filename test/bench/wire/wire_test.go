package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kvscout/kvscout/scorer/bench"
)

func report(rate, p50, p99, cpu float64) bench.Report {
	return bench.Report{Requests: rate, P50: p50, P99: p99, ServerCPU: &cpu}
}

func TestPrint(t *testing.T) {
	got := newResults()
	eight := cell{tokens: largest, kind: lean, callers: 8}
	for _, rate := range []float64{900, 100, 500} {
		got.add("kvscout", eight, report(rate, rate/10, rate/5, 7))
	}
	got.add("dynamo", eight, report(100, 1, 2, 3))
	got.add("dynamo", cell{tokens: largest, kind: lean, callers: 32}, report(1000, 1, 2, 3))
	got.add("kvscout", cell{tokens: largest, kind: lean, callers: 32}, report(4499, 1, 2, 3))
	got.add("kvscout", cell{tokens: openTokens, kind: openLoop, callers: 32}, report(1, 2, 1499, 3))
	for _, lag := range []float64{3, 1, 2} {
		got.ingested = append(got.ingested, bench.Ingested{Blocks: 1000 * lag, LagP50: lag / 10, LagP99: lag})
	}
	var out strings.Builder
	if err := got.print(&out, settings{reps: 3}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 16384 | Connect, lean client | 8 | kvscout | 500 | 50 | 100 | 7 | 0 |",
		"| 16384 | JSON, lean client | 8 | dynamo | 100 | 1 | 2 | 3 | 0 |",
		"| Connect, 16,384 tokens, 8 callers | >= 4.5x | 5.00x | met |",
		"| Connect, 16,384 tokens, 32 callers | >= 4.5x | 4.50x | missed |",
		"| p99 at half of the closed loop's calls/s | < 1500 us | 1499 us | met |",
		"2000 blocks a second were stored and removed beside, visible after 0.20 ms (p50) and 2.00 ms (p99)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "hashes") || strings.Contains(out.String(), "200,000") {
		t.Errorf("what was not measured is printed:\n%s", out.String())
	}
}

// The peer's answers are looked at as ours are.
func TestCheckPeer(t *testing.T) {
	w, err := bench.New(64, 2, 1, 1) // worker 0 holds 32 tokens, worker 1 holds 64
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		answer        string
		short, wholly bool // whether it passes
	}{
		{`{"scores":{"1":{"0":32},"2":{"0":64}}}`, true, true},
		{`{"scores":{"1":{"0":48},"2":{"0":64}}}`, true, false},
		{`{"scores":{"1":{"0":32},"2":{"0":48}}}`, false, false},
		{`{"scores":{"2":{"0":64}}}`, true, false},
		{`{"error":"no"}`, false, false},
		{`nonsense`, false, false},
	} {
		for wholly, want := range map[bool]bool{false: c.short, true: c.wholly} {
			if err := checkPeer(w, 0, []byte(c.answer), wholly); (err == nil) != want || err != nil && !errors.Is(err, bench.ErrWrong) {
				t.Errorf("%s, wholly %v: %v", c.answer, wholly, err)
			}
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for _, s := range []settings{{reps: 1, during: time.Second}, {kvscout: "x", during: time.Second}, {kvscout: "x", reps: 1}} {
		if run(t.Context(), s) == nil {
			t.Errorf("%+v runs", s)
		}
	}
}
