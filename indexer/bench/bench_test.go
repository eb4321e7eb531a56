package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/indexer/workload"
)

func smallPinned(t *testing.T) *workload.Pinned {
	t.Helper()
	p, err := workload.NewPinned(0.002)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func smallMooncake(t *testing.T, capacity int) *workload.Mooncake {
	t.Helper()
	f, err := os.Open("../workload/testdata/trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	trace, err := workload.ReadTrace(f)
	if err != nil {
		t.Fatal(err)
	}
	m, err := workload.NewMooncake(trace, capacity, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// plain is an index in the plainest way: what each holder has, by all contents up to the block.
type plain struct {
	paths  map[uint64]string // of a key; keys of the workloads stand for one prefix each
	copies map[string]map[string]int
}

func (p *plain) apply(o workload.Op, counted bool) {
	holder := fmt.Sprintf("holder-%d", o.Holder)
	if p.copies[holder] == nil {
		p.copies[holder] = make(map[string]int)
	}
	have := p.copies[holder]
	path := ""
	if o.HasParent {
		path = p.paths[o.Parent]
	}
	for _, b := range o.Blocks {
		if !o.Remove {
			path = fmt.Sprintf("%s/%x", path, b.Content)
			p.paths[b.Key] = path
			have[path]++
		} else if at := p.paths[b.Key]; counted {
			have[at]--
		} else {
			have[at] = 0
		}
	}
}

func (p *plain) depths(query []uint64) map[string]int {
	out := make(map[string]int)
	for holder, have := range p.copies {
		path := ""
		for i, c := range query {
			if path = fmt.Sprintf("%s/%x", path, c); have[path] == 0 {
				break
			}
			out[holder] = i + 1
		}
	}
	return out
}

func answered(t *testing.T, s *subject, query []uint64) map[string]int {
	t.Helper()
	list, err := s.find(t.Context(), keysOf(query))
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]int)
	for _, h := range list {
		out[s.x.Source(h.Source).Source().Worker] = int(h.Held) / blockSize
	}
	return out
}

// Every holder's depth in every query is that of a plain model: with removals that end all copies, and with counted ones.
func TestPinnedAnswersHolderByHolder(t *testing.T) {
	p := smallPinned(t)
	for _, counted := range []bool{false, true} {
		s, err := open(workload.PinnedHolders)
		if err != nil {
			t.Fatal(err)
		}
		model := &plain{paths: make(map[uint64]string), copies: make(map[string]map[string]int)}
		sc := newScript(p.Len(), p.Stream)
		sc.once = counted
		for op := range p.Ops() {
			sc.add(op)
			model.apply(op, counted)
		}
		s.apply(sc.steps)
		for _, c := range p.Cells {
			for i, q := range c.Queries {
				if i%7 > 0 && c.Name != "gate" {
					continue // enough to see
				}
				if diff := cmp.Diff(model.depths(q), answered(t, s, q)); diff != "" {
					t.Fatalf("counted %v: cell %s query %d (-want +got):\n%s", counted, c.Name, i, diff)
				}
			}
		}
	}
}

func TestPinnedReport(t *testing.T) {
	p := smallPinned(t)
	stages := make(map[string]bool)
	r, err := Pinned(t.Context(), p, Options{Reps: 3, Progress: func(stage string, done, total int) {
		stages[stage] = true
		if done > total {
			t.Errorf("%s: %d of %d", stage, done, total)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(stages) != 4 {
		t.Errorf("progress told of %v", stages)
	}
	// The numbers of testdata/reference.py for this scale (workload/testdata/expected.json).
	if r.Resident != 31_310 || r.Counted.Resident != 31_314 {
		t.Errorf("%d resident, %d with counted copies, want 31310 and 31314", r.Resident, r.Counted.Resident)
	}
	if r.FillMBlocks <= 0 || r.Heap < 4 || r.RSS == nil {
		t.Errorf("fill %v, heap %v, RSS %v", r.FillMBlocks, r.Heap, r.RSS)
	}
	for _, c := range p.Cells {
		got := r.Cells[c.Name]
		if got.N != len(c.Queries) || got.P50 <= 0 || got.P99 < got.P50 {
			t.Errorf("cell %s: %+v", c.Name, got)
		}
		if (workload.Answer{DepthSum: got.DepthSum, Matched: got.Matched}) != c.Want {
			t.Errorf("cell %s: %+v, want %+v", c.Name, got, c.Want)
		}
		if workload.Answer(r.Counted.Cells[c.Name]) != c.Counted {
			t.Errorf("cell %s, counted: %+v, want %+v", c.Name, r.Counted.Cells[c.Name], c.Counted)
		}
	}
	if r.Counted.Copies != p.Copies {
		t.Errorf("%d copies, want %d", r.Counted.Copies, p.Copies)
	}
}

// Hashes that differ from holder to holder change no answer.
func TestPinnedWithOwnHashes(t *testing.T) {
	p := smallPinned(t)
	r, err := Pinned(t.Context(), p, Options{OwnHashes: true})
	if err != nil || r.Resident != 31_310 {
		t.Errorf("%d resident: %v", r.Resident, err)
	}
	a, b := newScript(1, 1), newScript(1, 1)
	a.own, b.own = true, true
	a.add(workload.Op{Holder: 1, Blocks: []workload.Block{{Content: 1, Key: 1}}})
	b.add(workload.Op{Holder: 2, Blocks: []workload.Block{{Content: 1, Key: 1}}})
	if a.hashes[0] == b.hashes[0] {
		t.Error("two holders have one hash")
	}
}

// What is not the right answer is told, beside the report.
func TestWrongAnswersAreTold(t *testing.T) {
	p := smallPinned(t)
	p.Cells[1].Want.DepthSum++
	r, err := Pinned(t.Context(), p, Options{})
	if !errors.Is(err, ErrWrong) || !strings.Contains(err.Error(), "h8 depth sum") {
		t.Errorf("pinned: %v", err)
	}
	if r.Cells["h8"].N == 0 {
		t.Error("no report beside the error")
	}
	m := smallMooncake(t, 60)
	m.Final.Matched--
	m.Resident++
	_, err = Mooncake(t.Context(), m, Options{})
	if !errors.Is(err, ErrWrong) || !strings.Contains(err.Error(), "final checksum") || !strings.Contains(err.Error(), "resident") {
		t.Errorf("mooncake: %v", err)
	}
}

func TestMooncakeReport(t *testing.T) {
	for _, capacity := range []int{100_000, 60, 5} {
		m := smallMooncake(t, capacity)
		r, err := Mooncake(t.Context(), m, Options{Reps: 2})
		if err != nil {
			t.Fatal(err)
		}
		if r.Checksum != m.Want.DepthSum || r.FinalChecksum != m.Final.DepthSum || r.Resident != m.Resident {
			t.Errorf("capacity %d: %+v, want %+v, %+v and %d", capacity, r, m.Want, m.Final, m.Resident)
		}
		if r.FindP50 <= 0 || r.FindP99 < r.FindP50 || r.WritesMOps <= 0 {
			t.Errorf("capacity %d: %+v", capacity, r)
		}
	}
}

func TestCancelEndsARun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Pinned(ctx, smallPinned(t), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("pinned: %v", err)
	}
	if _, err := Mooncake(ctx, smallMooncake(t, 60), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("mooncake: %v", err)
	}
}

func TestPercentileAndMedian(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	// As the peers' drivers: element round((n-1) * p), half away from zero.
	for _, c := range []struct {
		list []time.Duration
		p    float64
		want int64
	}{{hundred, .5, 51}, {hundred, .99, 99}, {hundred[:1], .99, 1}, {nil, .5, 0}} {
		if got := percentile(c.list, c.p); got != c.want {
			t.Errorf("percentile %v of %d is %d, want %d", c.p, len(c.list), got, c.want)
		}
	}
	same := func(n int) int { return n }
	if got := []int{median([]int{3, 1, 2}, same), median([]int{4, 1, 3, 2}, same)}; got[0] != 2 || got[1] != 2 {
		t.Errorf("medians %v", got)
	}
}
