package service

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/events/simulate"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// engine is a simulated engine under traffic, which outlives every server.
type engine struct {
	*simulate.Engine
	traffic *simulate.Traffic

	mu     sync.Mutex // guards recent and last; held while a request runs, so that whoever holds it sees a quiet engine
	recent []simulate.Request
	last   uint64 // number of the last batch
	silent bool   // none was published yet
}

// keep is how many of the last requests are asked for again.
const keep = 150

func startEngine(t *testing.T, i int, random *rand.Rand) *engine {
	t.Helper()
	forms := simulate.Forms()
	e, err := simulate.New(simulate.Config{
		Worker: fmt.Sprintf("w%d", i), Form: forms[i%len(forms)], Model: "m", BlockSize: 16, Blocks: 256, Seed: random.Uint64(),
		Replay: "tcp://127.0.0.1:0", BufferSteps: 1 << 20, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return &engine{Engine: e, silent: true, traffic: simulate.NewTraffic(random.Uint64(), simulate.TrafficConfig{
		SystemPrompts: 4, SystemTokens: 96, Conversations: 6, MaxTokens: 640, TurnTokens: 96, Output: 24, Tenants: []string{"a", "b"},
	})}
}

// serve runs one request.
func (e *engine) serve(t *testing.T) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.traffic.Next()
	before := e.Stats().Published
	out, err := e.Serve(r)
	if err != nil {
		t.Error(err)
		return
	}
	if e.Stats().Published > before {
		e.last, e.silent = out.Sequence, false
	}
	if e.recent = append(e.recent, r); len(e.recent) > keep {
		e.recent = e.recent[1:]
	}
}

// spec is what a server is told.
func (e *engine) spec() string {
	s := e.Source()
	return fmt.Sprintf("id=%s,engine=%s,version=%s,model=m,block-size=16,events=%s,replay=%s", s.Worker, s.Engine, s.Version, s.Events, s.Replay)
}

// request asks about a prompt.
func request(r simulate.Request, candidates ...string) *connect.Request[kvscoutv1.ScoreRequest] {
	var packed []byte
	for _, t := range r.Tokens {
		packed = binary.LittleEndian.AppendUint32(packed, t)
	}
	return connect.NewRequest(&kvscoutv1.ScoreRequest{
		Model: "m", Tokens: &kvscoutv1.Tokens{Packed: packed}, CacheSalt: r.CacheSalt, Adapter: r.Adapter, Candidates: candidates,
	})
}

// world is engines, those who ask, and the server of the moment.
type world struct {
	t       *testing.T
	engines []*engine
	server  atomic.Pointer[server]
	args    []string
	answers atomic.Int64
	failed  atomic.Int64
}

// start starts the next server.
func (w *world) start() {
	args := append([]string{}, w.args...)
	for _, e := range w.engines {
		args = append(args, "--source", e.spec())
	}
	w.server.Store(serve(w.t, args...))
}

// live lets an engine serve until ctx ends.
func (w *world) live(ctx context.Context, e *engine, random *rand.Rand) {
	for ctx.Err() == nil {
		e.serve(w.t)
		time.Sleep(time.Duration(random.IntN(4000)) * time.Microsecond)
	}
}

// ask scores prompts of any engine until ctx ends. While no server is there an error of the connection is right, and one
// that is there answers.
func (w *world) ask(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		e := w.engines[random.IntN(len(w.engines))]
		e.mu.Lock()
		var r simulate.Request
		if n := len(e.recent); n > 0 {
			r = e.recent[random.IntN(n)]
		}
		e.mu.Unlock()
		if r.Tokens == nil {
			time.Sleep(time.Millisecond)
			continue
		}
		s := w.server.Load()
		_, err := s.score.Score(ctx, request(r))
		switch {
		case err == nil:
			w.answers.Add(1)
		case connect.IsWireError(err):
			w.t.Errorf("a server answers with %v", err)
			return
		default:
			w.failed.Add(1)
			time.Sleep(time.Millisecond)
		}
	}
}

// settle holds the engines still, and compares what the server says of their last prompts with what they hold: equal, and
// called exact.
func (w *world) settle() (compared, held int) {
	w.t.Helper()
	for _, e := range w.engines {
		e.mu.Lock()
	}
	defer func() {
		for _, e := range w.engines {
			e.mu.Unlock()
		}
	}()
	s := w.server.Load()
	eventually(w.t, func() string { return w.behind(s) })
	for _, e := range w.engines {
		id := e.Source().Worker
		for _, r := range e.recent {
			res, err := s.score.Score(w.t.Context(), request(r, id))
			if err != nil {
				w.t.Fatal(err)
			}
			got, want := res.Msg.GetWorkers()[0], e.Held(r)
			if int(got.GetHeldTokens()) != want || got.GetBound().GetKind() != kvscoutv1.BoundKind_BOUND_KIND_EXACT {
				w.t.Fatalf("%s (%s): %d tokens of %d, %v; the engine holds %d", id, e.Form(), got.GetHeldTokens(), len(r.Tokens), got.GetBound(), want)
			}
			compared++
			held += want
		}
	}
	return compared, held
}

// behind says which source has not applied its engine's last batch, or is not live.
func (w *world) behind(s *server) string {
	res, err := s.index.GetStats(w.t.Context(), connect.NewRequest(&kvscoutv1.GetStatsRequest{}))
	if err != nil {
		w.t.Fatal(err)
	}
	at := make(map[string]*kvscoutv1.Freshness)
	for _, src := range res.Msg.GetStats().GetSources() {
		at[src.GetWorkerId()] = src.GetFreshness()
	}
	for _, e := range w.engines {
		f := at[e.Source().Worker]
		if f.GetState() != kvscoutv1.FreshnessState_FRESHNESS_STATE_LIVE || !e.silent && (f.LastSequence == nil || f.GetLastSequence() != e.last) {
			return fmt.Sprintf("%s at batch %d, live; it is %v", e.Source().Worker, e.last, f)
		}
	}
	return ""
}

// A server that is killed while engines publish, callers ask and the snapshot is written answers right again after it was
// started anew, with a snapshot to go on from and without, time after time (rules 1, 8 and 11).
func TestRule11_KilledInTheMiddleOfEverything(t *testing.T) {
	t.Logf("-service.seed=%d", *seed)
	for _, snapshot := range []bool{true, false} {
		t.Run(fmt.Sprintf("snapshot=%v", snapshot), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(*seed, 1))
			w := &world{t: t}
			folder := t.TempDir()
			if snapshot {
				w.args = []string{"--snapshot", filepath.Join(folder, "index.snapshot"), "--snapshot-every", "5ms"}
			}
			for i := range 4 {
				w.engines = append(w.engines, startEngine(t, i, random))
			}
			w.start()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var wg sync.WaitGroup
			defer wg.Wait()
			defer stop()
			for i, e := range w.engines {
				wg.Go(func() { w.live(ctx, e, rand.New(rand.NewPCG(*seed, uint64(10+i)))) }) // both ended by stop, waited for
				wg.Go(func() { w.ask(ctx, rand.New(rand.NewPCG(*seed, uint64(20+i)))) })
			}
			restored := 0
			for life := range 6 {
				// Some lives end before the replay does, and in some the answers are looked at before.
				time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
				if life%3 == 2 {
					w.settle()
				}
				w.server.Load().kill()
				time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
				w.start()
				restored += w.restored(snapshot)
			}
			compared, held := w.settle()
			if compared == 0 || held == 0 || w.answers.Load() == 0 || w.failed.Load() == 0 {
				t.Errorf("%d answers compared that held %d tokens; %d answers, %d calls failed: this proves nothing", compared, held, w.answers.Load(), w.failed.Load())
			}
			if snapshot && restored == 0 {
				t.Error("no life went on from a snapshot: this proves nothing")
			}
			if files, err := os.ReadDir(folder); err != nil || len(files) > 2 {
				t.Errorf("files are left: %v, %v", files, err)
			}
			t.Logf("%d answers compared, %d lives went on from a snapshot, %d answers and %d failed calls between", compared, restored, w.answers.Load(), w.failed.Load())
		})
	}
}

// restored says whether the server went on from a snapshot. A file is whole or is not there: it is never damaged.
func (w *world) restored(snapshot bool) int {
	w.t.Helper()
	res, err := w.server.Load().index.GetStats(w.t.Context(), connect.NewRequest(&kvscoutv1.GetStatsRequest{}))
	if err != nil {
		w.t.Fatal(err)
	}
	st := res.Msg.GetStats().GetSnapshot()
	switch {
	case !snapshot && st == nil:
	case snapshot && st.GetOutcome() == "restored":
		return 1
	case snapshot && st.GetOutcome() == "none":
	default:
		w.t.Errorf("after a kill the snapshot is %v", st)
	}
	return 0
}
