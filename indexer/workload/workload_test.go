package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// expectation is testdata/expected.json, written by testdata/reference.py.
type expectation struct {
	Rng    []string
	Pinned []struct {
		Target, Families, Ops, Stream int
		Digest                        string
		WantResident                  int `json:"want_resident"`
		CountedResident               int `json:"counted_resident"`
		Cells                         map[string]struct {
			Queries       int
			Want, Counted answerJSON
		}
	}
	Mooncake []struct {
		Capacity, Copies          int
		Digest, Queries           string
		Stored, Removed, Resident int
		Want, Final               answerJSON
	}
}

type answerJSON struct {
	DepthSum int `json:"depth_sum"`
	Matched  int
}

func expected(t *testing.T) (e expectation) {
	t.Helper()
	data, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// digester hashes operations as reference.py does.
type digester struct{ h hash.Hash }

func newDigester() digester { return digester{sha256.New()} }

func (d digester) add(o Op) {
	flag := func(b bool) byte {
		if b {
			return 1
		}
		return 0
	}
	buf := binary.LittleEndian.AppendUint16(nil, uint16(o.Holder))
	buf = append(buf, flag(o.Remove), flag(o.HasParent))
	buf = binary.LittleEndian.AppendUint64(buf, o.Parent)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(o.Blocks)))
	for _, b := range o.Blocks {
		buf = binary.LittleEndian.AppendUint64(buf, b.Content)
		buf = binary.LittleEndian.AppendUint64(buf, b.Key)
	}
	d.h.Write(buf)
}

func (d digester) sum() string { return hex.EncodeToString(d.h.Sum(nil)) }

func TestRngIsSplitMix64(t *testing.T) {
	r := rng(pinnedSeed)
	for i, want := range expected(t).Rng {
		if got := strconv.FormatUint(r.next(), 10); got != want {
			t.Errorf("number %d is %s, want %s", i, got, want)
		}
	}
}

// Small pinned workloads are those of a second program, operation by operation, and so are the right answers.
func TestPinnedIsTheReferences(t *testing.T) {
	for _, want := range expected(t).Pinned {
		p, err := NewPinned(float64(want.Target) / pinnedTarget)
		if err != nil {
			t.Fatal(err)
		}
		d := newDigester()
		for o := range p.Ops() {
			d.add(o)
		}
		if d.sum() != want.Digest {
			t.Errorf("target %d: operations differ", want.Target)
		}
		got := []int{len(p.families), p.Len(), p.Stream, p.Resident, p.CountedResident}
		if diff := cmp.Diff([]int{want.Families, want.Ops, want.Stream, want.WantResident, want.CountedResident}, got); diff != "" {
			t.Errorf("target %d: counts (-want +got):\n%s", want.Target, diff)
		}
		if len(p.Cells) != len(want.Cells) {
			t.Errorf("target %d: %d cells, want %d", want.Target, len(p.Cells), len(want.Cells))
		}
		for _, c := range p.Cells {
			w := want.Cells[c.Name]
			if len(c.Queries) != w.Queries || c.Want != Answer(w.Want) || c.Counted != Answer(w.Counted) {
				t.Errorf("target %d: cell %s: %d queries, %+v, counted %+v, want %+v", want.Target, c.Name, len(c.Queries), c.Want, c.Counted, w)
			}
		}
	}
}

// At full scale NewPinned compares all published numbers itself. The numbers of counted copies are those that an
// earlier index, written for the same workload, reported.
func TestPinnedAtFullScaleIsThePublishedOne(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 13 million blocks")
	}
	p, err := NewPinned(1)
	if err != nil {
		t.Fatal(err)
	}
	if p.Copies != 642_592 || p.CountedResident != 12_822_401 {
		t.Errorf("%d copies, %d resident with them, want 642592 and 12822401", p.Copies, p.CountedResident)
	}
	if len(p.Mixed) != mixedAll {
		t.Errorf("%d mixed queries", len(p.Mixed))
	}
}

func TestPinnedThatDiffersIsRefused(t *testing.T) {
	p, err := NewPinned(0.001)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.compare(); !errors.Is(err, ErrDiffers) || !strings.Contains(err.Error(), "families") {
		t.Errorf("a small workload passes for the published one: %v", err)
	}
	for _, scale := range []float64{0, -1, 1.01} {
		if _, err := NewPinned(scale); !errors.Is(err, ErrScale) {
			t.Errorf("scale %v: %v", scale, err)
		}
	}
}

func excerpt(t *testing.T) *Trace {
	t.Helper()
	f, err := os.Open("testdata/trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	trace, err := ReadTrace(f)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// Mooncake over an excerpt of the trace is that of a second program: with and without evictions, with capacities
// smaller than a chain, and with copies.
func TestMooncakeIsTheReferences(t *testing.T) {
	trace := excerpt(t)
	for _, want := range expected(t).Mooncake {
		m, err := NewMooncake(trace, want.Capacity, want.Copies)
		if err != nil {
			t.Fatal(err)
		}
		d, q := newDigester(), sha256.New()
		for _, r := range m.Requests {
			for _, c := range r.Query {
				q.Write(binary.LittleEndian.AppendUint64(nil, c))
			}
			for _, o := range r.Ops {
				d.add(o)
			}
		}
		if d.sum() != want.Digest || hex.EncodeToString(q.Sum(nil)) != want.Queries {
			t.Errorf("capacity %d: operations or queries differ", want.Capacity)
		}
		if m.Stored != want.Stored || m.Removed != want.Removed || m.Resident != want.Resident {
			t.Errorf("capacity %d: stored %d, removed %d, resident %d, want %+v", want.Capacity, m.Stored, m.Removed, m.Resident, want)
		}
		if m.Want != Answer(want.Want) || m.Final != Answer(want.Final) {
			t.Errorf("capacity %d: answers %+v and %+v, want %+v", want.Capacity, m.Want, m.Final, want)
		}
	}
}

// The three published variants, where the whole trace is at hand: its path is in KVSCOUT_TRACE. NewMooncake compares
// the published numbers itself.
func TestMooncakeOnThePublishedTrace(t *testing.T) {
	path := os.Getenv("KVSCOUT_TRACE")
	if path == "" {
		t.Skip("KVSCOUT_TRACE does not name the Mooncake conversation trace, which is too large for this repository")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	trace, err := ReadTrace(f)
	if err != nil {
		t.Fatal(err)
	}
	if got := [3]int{len(trace.chains), trace.blocks, int(trace.ids)}; got != publishedTrace {
		t.Fatalf("%s is another trace: %v", path, got)
	}
	for _, v := range publishedVariants {
		if _, err := NewMooncake(trace, v.capacity, v.copies); err != nil {
			t.Errorf("capacity %d, %d copies: %v", v.capacity, v.copies, err)
		}
	}
}

func TestBadTracesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":        "{\"hash_ids\": [1]}\nhello\n",
		"a negative id":  `{"hash_ids": [-1]}`,
		"a large id":     `{"hash_ids": [67108864]}`,
		"an id twice":    `{"hash_ids": [1, 1]}`,
		"two prefixes":   "{\"hash_ids\": [1, 2]}\n{\"hash_ids\": [3, 2]}\n",
		"a late root":    "{\"hash_ids\": [1, 2]}\n{\"hash_ids\": [2]}\n",
		"nothing":        "",
		"empty requests": "{}\n{}\n",
		"a long line":    `{"hash_ids": [` + strings.Repeat("1,", maxTraceLine/2) + `1]}`,
	} {
		if _, err := ReadTrace(strings.NewReader(text)); !errors.Is(err, ErrTrace) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadVariantsAreRefused(t *testing.T) {
	trace := excerpt(t)
	for _, v := range [][2]int{{0, 1}, {-5, 1}, {10, 0}, {10, MaxCopies + 1}} {
		if _, err := NewMooncake(trace, v[0], v[1]); !errors.Is(err, ErrVariant) {
			t.Errorf("capacity %d, %d copies: %v", v[0], v[1], err)
		}
	}
	large := &Trace{chains: trace.chains, blocks: maxTraceBlocks, ids: trace.ids}
	if _, err := NewMooncake(large, 10, MaxCopies); !errors.Is(err, ErrVariant) {
		t.Errorf("too many blocks: %v", err)
	}
}
