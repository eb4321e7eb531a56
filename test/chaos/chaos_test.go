package chaos

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/simulate"
	"github.com/kvscout/kvscout/events/stream"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/ingest"
)

var (
	count  = flag.Int("chaos.engines", 16, "simulated engines")
	length = flag.Duration("chaos.for", 5*time.Second, "how long faults happen")
	seed   = flag.Uint64("chaos.seed", 1, "of traffic and faults; times differ all the same")
)

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// TestRule8_Rule11_Chaos is invariants 1 to 4.
func TestRule8_Rule11_Chaos(t *testing.T) {
	defer goleak.VerifyNone(t)
	before, heap := descriptors(t), heapBytes()
	func() {
		engines := make([]*engine, *count)
		for i := range engines {
			engines[i] = startEngine(t, i, *seed)
			defer func() {
				if err := engines[i].close(); err != nil {
					t.Error(err)
				}
			}()
		}
		x := indexer.New(indexer.Options{})
		log := new(journal)
		fleet := ingest.New(x, ingest.Options{Stream: stream.Options{
			Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Idle:   500 * time.Millisecond, ReplayIdle: time.Second, ReplayCooldown: time.Second, StaleAfter: 2 * time.Second,
			BackoffMin: 10 * time.Millisecond, BackoffMax: 200 * time.Millisecond,
		}})
		defer fleet.Close()
		for _, e := range engines {
			s := e.source()
			if _, err := fleet.Register(ingest.Worker{ID: s.Worker, Model: s.Model, Sources: []events.Source{s}}); err != nil {
				t.Fatal(err)
			}
		}
		// About 400 requests a second in all.
		faults := storm(t, engines, *length, max(50*time.Millisecond, time.Duration(*count)*2500*time.Microsecond), *seed)
		t.Logf("%d engines for %v, seed %d: %v", *count, *length, *seed, faults)
		settle(t, x, engines, log)
		leave(t, x, fleet, engines)
	}()
	if after := descriptors(t); after > before {
		t.Errorf("%d file descriptors are open, %d were", after, before)
	}
	after := heapBytes()
	t.Logf("heap: %d KiB before, %d KiB after", heap>>10, after>>10)
	if after > heap+4<<20 {
		t.Errorf("%d bytes are in use, %d were", after, heap)
	}
}

// leave takes every worker out: nothing of what they held may be left in the index.
func leave(t *testing.T, x *indexer.Index, fleet *ingest.Fleet, engines []*engine) {
	t.Helper()
	full := x.Stats()
	for _, e := range engines {
		fleet.Deregister(e.Source().Worker, nil)
	}
	s := x.Stats()
	if s.Blocks+s.HolderBlocks+s.Sources+s.Scopes > 0 {
		t.Errorf("left in the index: %+v", s)
	}
	t.Logf("index: %d KiB with %d blocks of holders, %d KiB without", full.Bytes>>10, full.HolderBlocks, s.Bytes>>10)
	if s.Bytes > full.Bytes/4 {
		t.Errorf("%d bytes without a worker, %d with all", s.Bytes, full.Bytes)
	}
}

// heapBytes is what lives on the heap.
func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools held on to
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// settle ends the faults, lets every engine say one last thing and compares (invariants 1 to 3), then resets the engines
// whose past is lost and compares again.
func settle(t *testing.T, x *indexer.Index, engines []*engine, log *journal) {
	t.Helper()
	began := time.Now()
	for _, e := range engines {
		e.live.calm()
		e.replay.calm()
		if err := e.speak(); err != nil { // also, a reset of vLLM is told with the next step
			t.Fatal(err)
		}
	}
	lost := 0
	for _, e := range engines {
		l := ledger(t, x, e)
		await(t, e, log, func() string {
			if e.small && l.Freshness().State == events.StateGap {
				return "" // invariant 3
			}
			return differs(x, l, e, !e.small || l.HistoryComplete())
		})
		if e.small && !l.HistoryComplete() {
			lost++
		}
		if d := differs(x, l, e, false); d != "" {
			f := l.Freshness()
			t.Errorf("%s holds more than it should: %s; state %v, complete %v; its log:\n%s", l.Source().ID(), d, f.State, l.HistoryComplete(), log.of(l.Source().ID()))
		}
	}
	for _, e := range engines {
		if !e.small {
			continue
		}
		if err := e.Reset(); err != nil {
			t.Fatal(err)
		}
		if err := e.speak(); err != nil {
			t.Fatal(err)
		}
		l := ledger(t, x, e)
		await(t, e, log, func() string { return differs(x, l, e, true) })
	}
	var replayed, gaps, resets uint64
	rejected := make(map[string]uint64)
	for _, l := range x.Ledgers() {
		s := l.Stats()
		replayed, gaps, resets = replayed+s.Replayed, gaps+s.Gaps, resets+s.Resets
		for r, n := range s.Rejected {
			if n > 0 {
				rejected[events.Reason(r).String()] += n
			}
		}
	}
	t.Logf("settled in %v: %d batches replayed, %d gaps, %d resets, %d sources had lost their past, rejected %v",
		time.Since(began).Round(time.Millisecond), replayed, gaps, resets, lost, rejected)
}

func ledger(t *testing.T, x *indexer.Index, e *engine) *indexer.Ledger {
	t.Helper()
	for _, l := range x.Ledgers() {
		if l.Source().Worker == e.Source().Worker {
			return l
		}
	}
	t.Fatalf("no source %s", e.Source().ID())
	return nil
}

// await waits until wrong has nothing to say.
func await(t *testing.T, e *engine, log *journal, wrong func() string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		text := wrong()
		if text == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s (%s) does not settle: %s; faults %v; its log:\n%s", e.Source().ID(), e.Form(), text, e.faults, log.of(e.Source().ID()))
		}
		time.Sleep(20 * time.Millisecond) // a poll with a deadline: the index tells nobody that it has changed
	}
}

// differs compares the index with the engine on what it served: equal, or else never above. It says
// what is wrong, "" if nothing is.
func differs(x *indexer.Index, l *indexer.Ledger, e *engine, equal bool) string {
	if f := l.Freshness(); f.State != events.StateLive && equal {
		return fmt.Sprintf("state is %v: %s", f.State, f.Why)
	}
	stats := l.Stats()
	blocks := stats.Resident[events.TierDevice]
	if want := e.Resident(); blocks > want || equal && blocks != want {
		return fmt.Sprintf("%d blocks, the engine has %d; %d gaps, %d resets, complete %v", blocks, want, stats.Gaps, stats.Resets, l.HistoryComplete())
	}
	for _, r := range e.served {
		held, err := lookup(x, l, r)
		if err != nil {
			return err.Error()
		}
		if want := e.Held(r); held > want || equal && held != want {
			return fmt.Sprintf("%d tokens of a prompt of %d, the engine has %d", held, len(r.Tokens), want)
		}
	}
	return ""
}

func lookup(x *indexer.Index, l *indexer.Ledger, r simulate.Request) (int, error) {
	matches, err := x.Lookup(context.Background(), indexer.Query{
		Model: l.Source().Model, Tokens: r.Tokens, Namespace: indexer.Namespace{Adapter: r.Adapter, Salt: r.CacheSalt},
	})
	if err != nil {
		return 0, err
	}
	for _, m := range matches {
		if m.Source.Worker == l.Source().Worker {
			return m.Held, nil
		}
	}
	return 0, fmt.Errorf("no answer about %s", l.Source().ID())
}

// journal keeps the last lines of the log.
type journal struct {
	mu    sync.Mutex // guards lines
	lines []string
}

// Write implements io.Writer.
func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) == 200_000 {
		j.lines = append(j.lines[:0], j.lines[100_000:]...)
	}
	j.lines = append(j.lines, string(line))
	return len(line), nil
}

// of is the end of what the log says of one source.
func (j *journal) of(source string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	for _, line := range j.lines {
		if strings.Contains(line, "source="+source+" ") {
			out = append(out, line)
		}
	}
	return strings.Join(out[max(0, len(out)-40):], "")
}

// descriptors counts the open files of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
