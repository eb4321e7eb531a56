package recording

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// Invariant 1: wherever a dump is cut, every record of the whole frames comes back, and the cut is reported once unless
// it lies between two frames.
func TestInvariant1_CutAnywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	recs := sample(t)
	for i := range 100 {
		payload := make([]byte, 10+rng.IntN(60)) // noise, so that blocks of every kind occur
		for j := range payload {
			payload[j] = byte(rng.Uint32() >> (i % 3 * 12))
		}
		recs = append(recs, message(byte(i), string(payload)))
	}
	const perFrame = 5
	data := dump(t, recs, perFrame)
	ends := frameEnds(t, data)
	if len(data) < 4096 || len(ends) < 10 {
		t.Fatalf("%d bytes in %d frames are too few", len(data), len(ends))
	}
	cuts := make([]int, 0, 2300)
	for cut := len(data) - 2048; cut <= len(data); cut++ {
		cuts = append(cuts, cut)
	}
	for range 200 {
		cuts = append(cuts, rng.IntN(len(data)))
	}
	for _, cut := range append(cuts, ends...) {
		whole, clean := 0, false
		for i, end := range ends {
			if end <= cut {
				whole, clean = min(i*perFrame, len(recs)), end == cut // the first frame is the header's
			}
		}
		got, faults := readAll(t, data[:cut])
		if len(got) != whole || whole > 0 && !reflect.DeepEqual(recs[:whole], got) {
			t.Fatalf("cut at %d of %d: %d records, want %d", cut, len(data), len(got), whole)
		}
		if clean && len(faults) != 0 || !clean && (len(faults) != 1 || !errors.Is(faults[0], ErrTorn)) {
			t.Fatalf("cut at %d of %d, clean %v: %v", cut, len(data), clean, faults)
		}
	}
}

// Invariant 1: what a cut costs is bounded however few records a recording has: no frame holds the whole of it, although
// nobody flushed.
func TestInvariant1_CutCostsTheTailOnly(t *testing.T) {
	recs := mustRead(t, readFile(t, "../../test/testdata/recordings/vllm-0.32-base.kvrec"))
	data := dump(t, recs, len(recs)+1)
	for percent := 20; percent < 100; percent += 10 {
		got, faults := readAll(t, data[:len(data)*percent/100])
		if least := len(recs) * (percent - 15) / 100; len(got) < least {
			t.Errorf("cut at %d%%: %d of %d records, want at least %d", percent, len(got), len(recs), least)
		}
		if len(faults) != 1 || !errors.Is(faults[0], ErrTorn) {
			t.Errorf("cut at %d%%: %v", percent, faults)
		}
	}
}

// frameEnds finds where frames end: where the reader's offset stands.
func frameEnds(t *testing.T, data []byte) []int {
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var ends []int
	for {
		_, err := r.Next()
		if err == io.EOF {
			return ends
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(ends) == 0 { // the header's frame, which gives no record
			ends = append(ends, int(bytesOfHeader(t)))
		}
		if at := int(r.Offset()); at != ends[len(ends)-1] {
			ends = append(ends, at)
		}
	}
}

func bytesOfHeader(t *testing.T) int { return len(dump(t, nil, 1)) }

// A raw sequence and JSON lines may be cut anywhere too.
func TestInvariant1_CutOtherForms(t *testing.T) {
	want := sample(t)
	for _, name := range []string{"testdata/sample.cbor", "testdata/sample.jsonl"} {
		data := readFile(t, name)
		for cut := 0; cut < len(data); cut += 13 {
			got, faults := readAll(t, data[:cut])
			if len(got) > len(want) || len(faults) > 1 {
				t.Fatalf("%s cut at %d: %d records, %v", name, cut, len(got), faults)
			}
			for _, f := range faults {
				if !errors.Is(f, ErrTorn) {
					t.Fatalf("%s cut at %d: %v", name, cut, f)
				}
			}
			if len(got) > 0 && !reflect.DeepEqual(want[len(got)-1], got[len(got)-1]) {
				t.Fatalf("%s cut at %d: record %d differs", name, cut, len(got)-1)
			}
		}
	}
}

// Case121: the torn last line is reported once, with its number; all before it loads; equal times keep their order.
func TestCase121_TornLine(t *testing.T) {
	text := `{"kind":"message","t":5,"source":"w1/0","frames":["","AAAAAAAAAAM=","AQ=="]}
{"kind":"message","t":5,"source":"w1/0","frames":["","AAAAAAAAAAQ=","AQ=="]}
{"kind":"message","t":6,"source":"w1/0","fra`
	got, faults := readAll(t, []byte(text))
	if len(got) != 2 || got[0].Frames[1][7] != 3 || got[1].Frames[1][7] != 4 {
		t.Errorf("%d records", len(got))
	}
	if len(faults) != 1 || !errors.Is(faults[0], ErrTorn) || !strings.Contains(faults[0].Error(), "line 3") {
		t.Errorf("%v", faults)
	}
	// A last line without its newline is whole.
	got, faults = readAll(t, []byte(text[:strings.LastIndexByte(text, '\n')]))
	if len(got) != 2 || len(faults) != 0 {
		t.Errorf("%d records, %v", len(got), faults)
	}
}

// Invariant 2: a damaged byte anywhere may cost records, never change one, and is reported.
func TestInvariant2_DamageAnywhere(t *testing.T) {
	recs := sample(t)
	data := dump(t, recs, 6)
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1 << (i % 8)
		got, faults := readAll(t, bad)
		if len(faults) == 0 && len(got) != len(recs) {
			t.Fatalf("byte %d: %d records of %d and no fault", i, len(got), len(recs))
		}
		rest := recs
		for _, g := range got {
			for len(rest) > 0 && !reflect.DeepEqual(rest[0], g) {
				rest = rest[1:]
			}
			if len(rest) == 0 {
				t.Fatalf("byte %d: a record that was never written, or out of order", i)
			}
			rest = rest[1:]
		}
	}
}

// A frame that is damaged costs its records; the next one is read.
func TestReader_GoesOnBehindDamage(t *testing.T) {
	recs := []*Record{message(1, "a"), message(2, "b"), message(3, "c")}
	data := dump(t, recs, 1)
	ends := frameEnds(t, data)
	data[ends[2]-1] ^= 1 // the checksum of the frame of the second
	got, faults := readAll(t, data)
	equal(t, got, []*Record{recs[0], recs[2]})
	if len(faults) != 1 || !errors.Is(faults[0], ErrRecord) {
		t.Error(faults)
	}
}

// Records reach a reader behind a pipe as soon as they are flushed.
func TestReader_Follows(t *testing.T) {
	in, out := io.Pipe()
	want := []*Record{message(1, "a"), message(2, "b"), message(3, "c")}
	seen, done := make(chan struct{}), make(chan error, 1)
	go func() { // ends with its records; the test waits for done
		w, err := NewWriter(out)
		for _, rec := range want {
			if err == nil {
				err = errors.Join(w.Write(rec), w.Flush())
			}
			<-seen // nothing more is written before the reader had this one
		}
		done <- errors.Join(err, w.Close(), out.Close())
	}()
	r, err := NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range want {
		got, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, []*Record{got}, []*Record{rec})
		seen <- struct{}{}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Error(err)
	}
}
