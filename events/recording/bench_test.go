package recording

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"
)

func vllmBase(b *testing.B) []*Record {
	return mustRead(b, readFile(b, filepath.Join(recordingsDir, "vllm-0.32-base.kvrec")))
}

// BenchmarkWrite writes a real recording of 624 records; MB/s are of CBOR, before compression.
func BenchmarkWrite(b *testing.B) {
	recs := vllmBase(b)
	b.SetBytes(int64(rawSize(b, recs)))
	b.ReportAllocs()
	for b.Loop() {
		w, err := NewWriter(io.Discard)
		if err != nil {
			b.Fatal(err)
		}
		for _, rec := range recs {
			if err := w.Write(rec); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(recs)*b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkRead reads it back in each form; MB/s are of CBOR for a dump, of text for lines.
func BenchmarkRead(b *testing.B) {
	recs := vllmBase(b)
	run := func(name string, data []byte, size int) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n = len(mustRead(b, data))
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
	run("form=dump", dump(b, recs, len(recs)), rawSize(b, recs))
	lines := bytes.Repeat(readFile(b, "testdata/sample.jsonl"), 30)
	run("form=lines", lines, len(lines))
}

func rawSize(b *testing.B, recs []*Record) int {
	var raw bytes.Buffer
	for _, rec := range recs {
		if err := encMode.MarshalToBuffer(toWire(rec), &raw); err != nil {
			b.Fatal(err)
		}
	}
	return raw.Len()
}
