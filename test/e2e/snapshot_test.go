package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// end stops the server as an operator does, and waits until it has ended.
func (s *server) end(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGTERM)
	<-s.ended
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, s.stderr)
	}
}

func (s *server) snapshot(t testing.TB) *kvscoutv1.SnapshotStats {
	t.Helper()
	out := new(kvscoutv1.GetStatsResponse)
	s.call(t, statsMethod, obj{}, out)
	if out.Stats.Snapshot == nil {
		t.Fatal("no statistics of the snapshot")
	}
	return out.Stats.Snapshot
}

// agree runs requests and compares each prediction with what the engine takes from its cache.
func agree(t testing.TB, s *server, e *engine, traffic *rand.Rand, n int) (hits int, last uint64) {
	t.Helper()
	for i := range n {
		tokens := prompt(traffic)
		got := s.score(t, e.id, tokens)
		r := e.serve(tokens)
		if got.ReusableTokens != uint32(r.Cached) || got.Bound.Kind != exact {
			t.Fatalf("request %d: predicted %d, %v; the engine took %d", i, got.ReusableTokens, got.Bound, r.Cached)
		}
		hits += r.Cached
		last = s.reached(t, e.id, 0, r.Seq).Freshness.GetLastSequence()
	}
	return hits, last
}

// unheard runs requests that nobody listens to.
func (e *engine) unheard(traffic *rand.Rand, n int) (last uint64) {
	for range n {
		last = e.serve(prompt(traffic)).Seq
	}
	return last
}

// A server that was stopped goes on where it ended: the engine replays the batches that were missed and no other, and
// every answer is again what the engine takes from its cache (rules 1, 8 and 11).
func TestRule8_SnapshotGoesOn(t *testing.T) {
	for i, form := range []string{"vllm", "vllm-array", "sglang", "vllm"} {
		dial := i == 3
		t.Run(fmt.Sprint(form, " dial=", dial), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "index.snapshot")
			e := startEngine(t, engineConfig{id: "w0", form: form, dial: dial, replay: true, blocks: 48})
			s := serveFleet(t, []*engine{e}, "--snapshot", file)
			if got := s.snapshot(t); got.Outcome != "none" {
				t.Errorf("at the first start: %v", got)
			}
			s.inState(t, "w0", 0, stateLive)
			e.hello(s)
			traffic := rand.New(rand.NewPCG(uint64(i), 4))
			_, last := agree(t, s, e, traffic, 60)
			before := s.stats(t, "w0", 0)
			s.end(t)
			for life := range 3 {
				missed := e.unheard(traffic, 20*life)
				if life == 0 {
					missed = last
				}
				s = serveFleet(t, []*engine{e}, "--snapshot", file)
				st := s.reached(t, "w0", 0, missed)
				if got := st.ReplayedBatches - before.ReplayedBatches; got != missed-last && !dial { // an engine that dials queues for us what it publishes meanwhile
					t.Errorf("%d batches replayed, %d were missed", got, missed-last)
				}
				if st.Resets != before.Resets || st.Gaps != before.Gaps {
					t.Errorf("a reset or a gap: %v", st)
				}
				if got := s.snapshot(t); got.Outcome != "restored" || got.RestoredSources != 1 || len(got.DroppedSources) > 0 {
					t.Errorf("at the start: %v", got)
				}
				e.hello(s)
				var hits int
				if hits, last = agree(t, s, e, traffic, 40); hits == 0 {
					t.Error("nothing was ever hit: the traffic proves nothing")
				}
				before = s.stats(t, "w0", 0)
				s.end(t)
			}
		})
	}
}

// An engine that started again while the server was away is not taken for the one before, whatever number it has reached
// (rule 11, case 95). Nothing of the old life is ever called exact.
func TestRule11_SnapshotOfAnEngineThatRestarted(t *testing.T) {
	for _, reach := range []int{0, 1, 3, 9} {
		t.Run(fmt.Sprint(reach, " batches"), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "index.snapshot")
			e := startEngine(t, engineConfig{id: "w0", replay: true})
			s := serveFleet(t, []*engine{e}, "--snapshot", file)
			s.inState(t, "w0", 0, stateLive)
			e.hello(s)
			for i := range uint32(3) {
				s.reached(t, "w0", 0, e.serve(span(1, 5+4*i)).Seq)
			}
			s.end(t)
			e.restart()
			for i := range uint32(reach) {
				e.serve(span(41, 45+4*i))
			}
			s = serveFleet(t, []*engine{e}, "--snapshot", file)
			s.await(t, "the restart seen", "w0", 0, func(st *kvscoutv1.SourceStats) bool {
				w := s.score(t, "w0", span(1, 13))
				if w.Bound.Kind == exact && w.HeldTokens > 0 {
					t.Fatalf("the old life is called exact: %v", w)
				}
				return st.Resets == 1 && st.Freshness.State == stateLive
			})
			same(t, "old life", s.score(t, "w0", span(1, 13)), answer{0, 0, exact, ""})
			if held := uint32(4 * reach); reach > 0 {
				s.reached(t, "w0", 0, uint64(reach-1))
				same(t, "new life", s.score(t, "w0", span(41, 41+held)), answer{held, held, exact, ""})
			}
		})
	}
}

// Without a replay endpoint: the next number goes on, flagged until the engine clears its cache; a hole drops what was
// held; and silence is not credited for longer than --stale-after (rules 11, 12 and 13).
func TestRule13_SnapshotWithoutReplay(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "index.snapshot")
	next := startEngine(t, engineConfig{id: "next"})
	hole := startEngine(t, engineConfig{id: "hole"})
	mute := startEngine(t, engineConfig{id: "mute"})
	all := []*engine{next, hole, mute}
	s := serveFleet(t, all, "--snapshot", file)
	for _, e := range all {
		e.hello(s)
		s.reached(t, e.id, 0, e.do(obj{"op": "clear"}).Seq)
		s.reached(t, e.id, 0, e.serve(span(1, 9)).Seq)
		same(t, e.id, s.score(t, e.id, span(1, 9)), answer{8, 8, exact, ""})
	}
	s.end(t)
	hole.serve(span(21, 29))

	s = serveFleet(t, all, "--snapshot", file, "--stale-after", "2s")
	for _, e := range all { // before anything is known
		w := s.score(t, e.id, span(1, 9))
		if w.Bound.Kind != estimate || w.HeldTokens != 8 {
			t.Errorf("%s: %v", e.id, w)
		}
	}
	next.hello(s)
	hole.hello(s)
	s.reached(t, "next", 0, next.serve(span(1, 13)).Seq)
	same(t, "goes on, unproven", s.score(t, "next", span(1, 13)), answer{12, 12, estimate, "RESUMED"})
	s.reached(t, "next", 0, next.do(obj{"op": "clear"}).Seq)
	s.reached(t, "next", 0, next.serve(span(31, 39)).Seq)
	same(t, "cleared", s.score(t, "next", span(31, 39)), answer{8, 8, exact, ""})

	s.reached(t, "hole", 0, hole.serve(span(41, 49)).Seq, stateGap)
	same(t, "dropped", s.score(t, "hole", span(1, 9)), answer{0, 0, lower, "HISTORY_MISSING"})

	s.inState(t, "mute", 0, stateStale)
	w := s.score(t, "mute", span(1, 9))
	same(t, "silent", w, answer{8, 8, estimate, "STALE RESUMED"})
	if w.Score != 0 {
		t.Errorf("a silent source is credited: %v", w)
	}
}

// A snapshot that is damaged is refused: the server begins empty, says so, and is right. So it is with one of which only
// a part was written.
func TestRule11_DamagedSnapshot(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "index.snapshot")
	e := startEngine(t, engineConfig{id: "w0", replay: true, blocks: 48})
	s := serveFleet(t, []*engine{e}, "--snapshot", file)
	s.inState(t, "w0", 0, stateLive)
	e.hello(s)
	traffic := rand.New(rand.NewPCG(1, 5))
	_, last := agree(t, s, e, traffic, 30)
	s.end(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func() []byte{
		"cut off": func() []byte { return whole[:len(whole)/2] },
		"flipped": func() []byte { b := bytes.Clone(whole); b[len(b)/2] ^= 4; return b },
		"empty":   func() []byte { return nil },
	} {
		if err := os.WriteFile(file, damage(), 0o600); err != nil {
			t.Fatal(err)
		}
		s = serveFleet(t, []*engine{e}, "--snapshot", file)
		if got := s.snapshot(t); got.Outcome != "damaged" || got.Error == "" || got.RestoredSources != 0 {
			t.Errorf("%s: %v", name, got)
		}
		if log := s.stderr.String(); !bytes.Contains([]byte(log), []byte("snapshot is refused, the index begins empty")) {
			t.Errorf("%s: the log says nothing of it:\n%s", name, log)
		}
		st := s.reached(t, "w0", 0, last) // all of it, by replay from the beginning
		if st.ReplayedBatches != last+1 {
			t.Errorf("%s: %d batches replayed of %d", name, st.ReplayedBatches, last+1)
		}
		e.hello(s)
		_, last = agree(t, s, e, traffic, 5)
		s.kill()
	}
}

// The file is written while the server runs, and one that is killed at any moment leaves a whole one. Workers that were
// registered by RPC are there again; one that was taken out is not.
func TestSnapshot_KilledServer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "index.snapshot")
	kept := startEngine(t, engineConfig{id: "kept", replay: true, blocks: 1 << 16})
	gone := startEngine(t, engineConfig{id: "gone", replay: true})
	s := serve(t, "--snapshot", file, "--snapshot-every", "1ms")
	for _, e := range []*engine{kept, gone} {
		s.call(t, registerMethod, e.worker(), new(kvscoutv1.RegisterWorkerResponse))
		s.inState(t, e.id, 0, stateLive)
		e.hello(s)
	}
	s.reached(t, "gone", 0, gone.serve(span(1, 9)).Seq)
	s.reached(t, "kept", 0, kept.serve(span(1, 9)).Seq)
	s.call(t, deregisterMethod, obj{"workerId": "gone"}, new(kvscoutv1.DeregisterWorkerResponse))
	for life := range uint32(8) {
		first := 1000 * (life + 1)
		last := kept.serve(span(first, first+400)).Seq
		s.reached(t, "kept", 0, last)
		saves := s.snapshot(t).Saves
		eventually(t, "some snapshots", func() bool { return s.snapshot(t).Saves > saves+2 })
		s.kill()
		if out, err := exec.Command(program, "snapshot", "info", file).CombinedOutput(); err != nil {
			t.Fatalf("kvscout snapshot info: %v: %s", err, out)
		}
		s = serve(t, "--snapshot", file, "--snapshot-every", "1ms")
		s.reached(t, "kept", 0, last)
		if got := s.snapshot(t); got.Outcome != "restored" || got.RestoredSources != 1 || got.RestoredWorkers != 1 {
			t.Fatalf("life %d: %v", life, got)
		}
		kept.hello(s)
		same(t, "the worker that was registered", s.score(t, "kept", span(first, first+400)), answer{400, 400, exact, ""})
	}
	out := new(kvscoutv1.ListWorkersResponse)
	s.call(t, listMethod, obj{}, out)
	if len(out.Workers) != 1 {
		t.Errorf("one worker wanted: %v", out)
	}
}
