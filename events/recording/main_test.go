package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// readAll reads data to its end, going on behind faults, which it returns too.
func readAll(t testing.TB, data []byte) (records []*Record, faults []error) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, []error{err}
	}
	return drain(t, r)
}

func drain(t testing.TB, r *Reader) (records []*Record, faults []error) {
	t.Helper()
	for {
		rec, err := r.Next()
		switch {
		case err == nil:
			records = append(records, rec)
		case err == io.EOF:
			return records, faults
		case errors.Is(err, ErrRecord) || errors.Is(err, ErrTorn):
			faults = append(faults, err)
		default:
			return records, append(faults, err)
		}
	}
}

// mustRead reads data that has no faults.
func mustRead(t testing.TB, data []byte) []*Record {
	t.Helper()
	records, faults := readAll(t, data)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return records
}

// dump writes records in the dump form, ending a frame behind every perFrame of them.
func dump(t testing.TB, records []*Record, perFrame int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	for i, rec := range records {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		if (i+1)%perFrame == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sample is what testdata/make.py read from sample.jsonl.
func sample(t testing.TB) []*Record {
	t.Helper()
	var listed []struct {
		Kind, Source, Text, Client string
		Time                       int64
		Info                       *events.Source
		Frames                     [][]byte
		Request                    *Request
	}
	if err := json.Unmarshal(readFile(t, "testdata/sample.json"), &listed); err != nil {
		t.Fatal(err)
	}
	var out []*Record
	for _, l := range listed {
		kind, ok := parseKind(l.Kind)
		if !ok {
			t.Fatalf("kind %q", l.Kind)
		}
		out = append(out, &Record{
			Kind: kind, Time: l.Time, Source: l.Source, Text: l.Text, Client: l.Client,
			Info: l.Info, Frames: l.Frames, Request: l.Request,
		})
	}
	return out
}

func message(seq byte, payload string) *Record {
	frames := [][]byte{{}, {0, 0, 0, 0, 0, 0, 0, seq}, []byte(payload)}
	return &Record{Kind: KindMessage, Time: 7, Source: "w1/0", Frames: frames}
}

func equal(t testing.TB, got, want []*Record) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records differ (-want +got):\n%s", diff)
	}
}
