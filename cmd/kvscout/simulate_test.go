package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events/simulate"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/test/testport"
)

// Whatever the form, an exact prediction is the number that the engine reports, by gRPC and Connect JSON, and the
// engines leave the server at the end.
func TestSimulateScored(t *testing.T) {
	server, _ := startServe(t, "--listen", "127.0.0.1:0")
	for _, form := range []string{"vllm", "vllm-array", "sglang", "sglang-array", "mixed"} {
		t.Run(form, func(t *testing.T) {
			sample := t.TempDir() + "/ids.json"
			v := okJSON(t, "simulate", "--form", form, "--engines", "3", "--blocks", "200", "--rate", "0", "--requests", "120",
				"--seed", "11", "--register", server, "--score", server, "--sample", sample, "--json")
			if v["requests"] != 120.0 || v["scored"] != 120.0 || v["equal"] != 120.0 || v["wrong"] != 0.0 {
				t.Errorf("got %v", v)
			}
			if cached := v["cached_tokens"].(float64); cached == 0 {
				t.Error("nothing was taken from a cache: the test proves nothing")
			}
			if info, err := os.Stat(sample); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("sample: %v", err)
			}
			wants(t, ok(t, "workers", "--server", server), "no workers")
		})
	}
}

func TestSimulateAlone(t *testing.T) {
	var r result
	port := ""
	for range 5 { // a free port, or the next, may be taken meanwhile
		port = strconv.Itoa(testport.Free(t, 1) - 1)
		r = run(t, "simulate", "--engines", "1", "--base-port", port, "--for", "300ms")
		if r.code == exitOK {
			break
		}
	}
	if r.code != exitOK {
		t.Fatalf("exits with %d: %s", r.code, r.err)
	}
	wants(t, r.out, "ENGINE", "sim-0", "total")
	if strings.Contains(r.out, "EQUAL") || strings.Contains(r.out, "EVICTIONS") {
		t.Errorf("nobody was asked, yet there are predictions:\n%s", r.out)
	}
	wants(t, r.err, "--source id=sim-0,engine=vllm,model=sim-model,block-size=16,events=tcp://127.0.0.1:"+port)
}

// A signal ends a simulation like --for does, also one that comes while the engines are registered.
func TestSimulateInterrupted(t *testing.T) {
	server, _ := startServe(t, "--listen", "127.0.0.1:0")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs bytes.Buffer
	code := make(chan int, 1)
	// Ended by cancel; waited for below.
	go func() {
		code <- execute(ctx, []string{"simulate", "--register", server, "--score", server}, strings.NewReader(""), &out, &errs)
	}()
	eventually(t, "requests", func() bool { return strings.Contains(ok(t, "stats", "--server", server), "sim-3") })
	cancel()
	if c := <-code; c != exitOK {
		t.Errorf("exits with %d: %s", c, errs.String())
	}
	wants(t, ok(t, "workers", "--server", server), "no workers")
}

func TestSimulateNeedsItsServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	l.Close()
	r := run(t, "simulate", "--register", nobody)
	if r.code != exitFailed {
		t.Errorf("exits with %d", r.code)
	}
	wants(t, r.err, "register sim-0", "unavailable")
}

// Whoever registers a worker under a name in use is told that he takes it.
func TestSimulateTellsOfReplacedWorkers(t *testing.T) {
	server, _ := startServe(t, "--listen", "127.0.0.1:0", "--source", "id=sim-0,engine=vllm,model=other")
	r := run(t, "simulate", "--engines", "2", "--requests", "1", "--register", server)
	if r.code != exitOK {
		t.Fatalf("exits with %d: %s", r.code, r.err)
	}
	wants(t, r.err, `a worker "sim-0" already`)
	if strings.Contains(r.err, `a worker "sim-1" already`) {
		t.Error(r.err)
	}
}

func TestCompare(t *testing.T) {
	const reported = 48
	for _, c := range []struct {
		kind      kvscoutv1.BoundKind
		predicted uint32
		want      tally
	}{
		{kvscoutv1.BoundKind_BOUND_KIND_EXACT, 48, tally{Scored: 1, Equal: 1}},
		{kvscoutv1.BoundKind_BOUND_KIND_EXACT, 64, tally{Scored: 1, Over: 1, Wrong: 1}},
		{kvscoutv1.BoundKind_BOUND_KIND_EXACT, 32, tally{Scored: 1, Under: 1, Wrong: 1}},
		{kvscoutv1.BoundKind_BOUND_KIND_UPPER, 64, tally{Scored: 1, Over: 1, Bounds: 1}},
		{kvscoutv1.BoundKind_BOUND_KIND_UPPER, 32, tally{Scored: 1, Under: 1, Wrong: 1}},
		{kvscoutv1.BoundKind_BOUND_KIND_LOWER, 32, tally{Scored: 1, Under: 1, Bounds: 1}},
		{kvscoutv1.BoundKind_BOUND_KIND_LOWER, 64, tally{Scored: 1, Over: 1, Wrong: 1}},
		{kvscoutv1.BoundKind_BOUND_KIND_ESTIMATE, 64, tally{Scored: 1, Over: 1, Bounds: 1}},
	} {
		e := &simEngine{Engine: startEngine(t, simulate.Config{Worker: "w"})}
		e.src = e.Source()
		answer := []*kvscoutv1.WorkerScore{{WorkerId: "w", Known: true, ReusableTokens: c.predicted, Bound: &kvscoutv1.Bound{Kind: c.kind}}}
		if err := e.compare(answer, reported); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, e.tally); diff != "" {
			t.Errorf("%v %d: %s", c.kind, c.predicted, diff)
		}
	}
	e := &simEngine{}
	e.src.Worker = "w"
	if err := e.compare([]*kvscoutv1.WorkerScore{{WorkerId: "w"}}, 0); err == nil {
		t.Error("a worker that the server does not know is compared")
	}
}
