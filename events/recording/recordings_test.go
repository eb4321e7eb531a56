package recording

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const recordingsDir = "../../test/testdata/recordings"

// tally is what testdata/make.py counted in the JSON lines that the dumps were made of.
type tally struct {
	Kinds        map[string]int `json:"kinds"`
	PromptTokens int            `json:"prompt_tokens"`
	CachedTokens int            `json:"cached_tokens"`
	SHA256       string         `json:"sha256"`
}

func TestRecordings_HoldWhatPythonCounted(t *testing.T) {
	want := make(map[string]tally)
	if err := json.Unmarshal(readFile(t, "testdata/counts.json"), &want); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(recordingsDir, "*.kvrec"))
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d files, %v, want %d", len(files), err, len(want))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".kvrec")
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want[name], count(t, file)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func count(t *testing.T, path string) tally {
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, sum := tally{Kinds: make(map[string]int)}, sha256.New()
	for {
		rec, err := r.Next()
		if err == io.EOF {
			got.SHA256 = hex.EncodeToString(sum.Sum(nil))
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got.Kinds[rec.Kind.String()]++
		if q := rec.Request; q != nil {
			got.PromptTokens += q.PromptTokens
			got.CachedTokens += q.CachedTokens
		}
		digest(sum, rec)
	}
}

// digest is make.py's function of that name.
func digest(sum hash.Hash, rec *Record) {
	fmt.Fprintf(sum, "%v %d %s\n", rec.Kind, rec.Time, rec.Source)
	parts := rec.Frames
	if q := rec.Request; q != nil {
		parts = [][]byte{nil, q.Body, []byte(q.Model), []byte(q.Adapter), []byte(q.CacheSalt), []byte(q.ExtraKey), []byte(q.LoraID)}
		for _, token := range q.Tokens {
			parts[0] = binary.LittleEndian.AppendUint32(parts[0], token)
		}
	}
	for _, p := range parts {
		sum.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(p))))
		sum.Write(p)
	}
}
