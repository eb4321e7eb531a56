package recording

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// The three forms of one recording say the same, and what Python read in it.
func TestSample_FormsReadAlike(t *testing.T) {
	want := sample(t)
	lines := mustRead(t, readFile(t, "testdata/sample.jsonl"))
	equal(t, lines, want)
	equal(t, mustRead(t, readFile(t, "testdata/sample.cbor")), want)
	equal(t, mustRead(t, dump(t, lines, 4)), want)
}

// A few values of the sample, by hand.
func TestSample_ByHand(t *testing.T) {
	recs := mustRead(t, readFile(t, "testdata/sample.jsonl"))
	first := recs[0].Info
	if first.ID() != "w0/0" || first.Engine != "vllm" || first.Version != "0.32.0" || first.BlockSize != 32 || first.SpeculativeEAGLE {
		t.Errorf("source %+v", first)
	}
	if got := string(recs[1].Frames[0]); got != "kv@127.0.0.1@tiny-qwen3" {
		t.Errorf("topic %q", got)
	}
	if diff := cmp.Diff([]byte{0, 0, 0, 0, 0, 0, 1, 28}, recs[1].Frames[1]); diff != "" {
		t.Error(diff)
	}
	if got := recs[2].Request; got.After["w0/0"] != 482 || got.Path != "/v1/completions" || got.HasHost {
		t.Errorf("request after %v, path %q, host %v", got.After, got.Path, got.HasHost)
	}
	if end := recs[len(recs)-2]; end.Client != "DEALER" || len(end.Frames) != 4 || end.Frames[0] == nil || len(end.Frames[2]) != 8 {
		t.Errorf("reply %+v", end)
	}
}

// The bytes of a dump are those that make.py derives from the table in doc.go alone.
func TestSample_DumpIsTheDocumentedSequence(t *testing.T) {
	packed := dump(t, mustRead(t, readFile(t, "testdata/sample.jsonl")), 5)
	in, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	raw, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(raw, readFile(t, "testdata/sample.cbor")) {
		t.Error("the dump's CBOR is not sample.cbor")
	}
}

// Case33: two dumps of one state are equal, and so is the dump of a loaded dump, whatever the order of Go's maps.
func TestCase33_DumpsAreDeterministic(t *testing.T) {
	recs := sample(t)
	big := &Request{After: map[string]uint64{}, Extra: map[string]string{}}
	for _, s := range []string{"a/0", "b/0", "cc/0", "d/1", "e/0", "ff/10"} {
		big.After[s], big.Extra[s] = uint64(len(s)), s
	}
	recs = append(recs, &Record{Kind: KindRequest, Source: "a/0", Request: big})
	first := dump(t, recs, 7)
	for range 20 {
		if again := dump(t, mustRead(t, first), 7); !bytes.Equal(first, again) {
			t.Fatal("second dump differs")
		}
	}
}

// Case98: a restarted engine repeats its sequence numbers; both lives come back, in order.
func TestCase98_RestartIsKept(t *testing.T) {
	want := []*Record{message(0, "store 101"), message(1, "store 102"), message(0, "store 201"), message(1, "store 202")}
	equal(t, mustRead(t, dump(t, want, 1)), want)
}

// Case119: dumps are for their owner only, also where a file that others can read was before.
func TestCase119_OwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.kvrec")
	for _, before := range []func() error{
		func() error { return nil },
		func() error { return os.Chmod(path, 0o644) },
	} {
		if err := before(); err != nil {
			t.Fatal(err)
		}
		w, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(message(1, "x")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v", info.Mode())
		}
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		recs, faults := drain(t, r)
		if len(recs) != 1 || len(faults) != 0 || r.Size() != info.Size() || r.Offset() != r.Size() {
			t.Errorf("%d records, %v, offset %d of %d", len(recs), faults, r.Offset(), r.Size())
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
