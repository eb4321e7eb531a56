package token

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// parityCases is testdata/cases.json.zst, made by testdata/cases.py with Hugging Face's library.
type parityCases struct {
	Strings []string
	Bases   map[string]map[string]json.RawMessage
	Cases   []parityCase
}

type parityCase struct {
	Name, Base string
	Parts      map[string]json.RawMessage
	IDs        [2][][]uint32 `json:"ids"` // without and with special tokens
}

// file is the tokenizer.json of a case.
func (c *parityCases) file(t testing.TB, pc parityCase) []byte {
	t.Helper()
	all := map[string]json.RawMessage{}
	for _, parts := range []map[string]json.RawMessage{c.Bases[pc.Base], pc.Parts} {
		for k, v := range parts {
			all[k] = v
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func readZstd(t testing.TB, path string, into any) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if err := json.NewDecoder(z).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// refusedCases cannot be exact and are refused, with what the error must name.
var refusedCases = map[string]string{}

// TestCases encodes 160 hostile strings by small tokenizers with every normalizer, pre-tokenizer, model option, kind of
// added token and post-processor that this package reads.
func TestCases(t *testing.T) {
	var all parityCases
	readZstd(t, "testdata/cases.json.zst", &all)
	for _, c := range all.Cases {
		t.Run(c.Name, func(t *testing.T) {
			tk, err := Parse(all.file(t, c))
			if want, refused := refusedCases[c.Name]; refused {
				if !errors.Is(err, ErrUnsupported) {
					t.Fatalf("got %v, want %v for %s", err, ErrUnsupported, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for special, lists := range c.IDs {
				bad := 0
				for i, s := range all.Strings {
					got, err := tk.Encode(nil, s, special == 1)
					if err != nil {
						t.Fatalf("%q: %v", s, err)
					}
					if !slices.Equal(got, lists[i]) {
						if bad++; bad < 3 {
							t.Errorf("special %d, %q: got %v, want %v", special, s, got, lists[i])
						}
					}
				}
				if bad > 0 {
					t.Errorf("special %d: %d of %d differ", special, bad, len(all.Strings))
				}
			}
		})
	}
}
