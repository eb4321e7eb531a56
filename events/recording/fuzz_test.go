package recording

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// fuzzLimits keep a hostile input from being slow, so that the fuzzer sees whether memory follows the bounds.
var fuzzLimits = limits{record: 1 << 16, frame: 1 << 18}

// fuzzRead reads data to its end: it must end, and whatever was returned can be written and is read back the same.
func fuzzRead(t *testing.T, data []byte) {
	r, err := newReader(bytes.NewReader(data), fuzzLimits)
	if err != nil {
		return
	}
	var recs []*Record
	for n := 0; ; n++ {
		rec, err := r.Next()
		if err == nil {
			recs = append(recs, rec)
			continue
		}
		if !errors.Is(err, ErrRecord) && !errors.Is(err, ErrTorn) {
			if err != io.EOF && !errors.Is(err, ErrFormat) {
				t.Fatalf("unexpected %v", err)
			}
			break
		}
		if n > len(data)+fuzzLimits.frame*(1+len(data)/4) {
			t.Fatal("reading does not end")
		}
	}
	if r.Offset() > int64(len(data)) {
		t.Fatalf("offset %d of %d", r.Offset(), len(data))
	}
	if len(recs) > 0 {
		equal(t, mustRead(t, dump(t, recs, len(recs))), recs)
	}
}

func FuzzReadDump(f *testing.F) {
	recs := sample(f)
	f.Add(dump(f, recs, 3))
	f.Add(dump(f, recs[:1], 1))
	f.Add(dump(f, nil, 1))
	f.Add(readFile(f, "testdata/sample.cbor"))
	f.Add(unhex(f, headerHex+noteHex+"a2000404 7b7fffffffffffffff"))
	f.Add(unhex(f, "28b52ffd e0 00000000ffffff00 010000"))
	f.Fuzz(fuzzRead)
}

// FuzzReadSequence wraps the input in a frame and a header, which the fuzzer does not find by itself.
func FuzzReadSequence(f *testing.F) {
	raw := readFile(f, "testdata/sample.cbor")
	f.Add(raw[len(headerHex)/2:])
	f.Add(unhex(f, noteHex))
	header := unhex(f, headerHex)
	f.Fuzz(func(t *testing.T, items []byte) {
		fuzzRead(t, append(bytes.Clone(header), items...))
		fuzzRead(t, pack(t, append(bytes.Clone(header), items...)))
	})
}

func FuzzReadJSON(f *testing.F) {
	for line := range bytes.Lines(readFile(f, "testdata/sample.jsonl")) {
		f.Add(line)
	}
	f.Add([]byte(goodLine + "\n{}\n" + goodLine))
	f.Add([]byte(`{"kind":"request","body":"\ud83d\ude00\ud83d","after":{"a":1,"a":2}}`))
	f.Fuzz(fuzzRead)
}
