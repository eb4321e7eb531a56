//go:build hftokenizers

package hf

import (
	"os"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/render/token"
	"github.com/kvscout/kvscout/test/tokenizers"
)

// BenchmarkEngines encodes the same text by both engines in one run: this repository's documents and code, 25 KB as a
// long conversation has. Both have caches of words, warm after the first round.
func BenchmarkEngines(b *testing.B) {
	var all strings.Builder
	for _, path := range []string{"../../../docs/architecture.md", "../../../docs/engines.md", "../tokenizer.go", "../model.go"} {
		data, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		all.Write(data)
	}
	text := strings.ToValidUTF8(all.String()[:25_000], "")
	for _, name := range tokenizers.Names {
		own, err := token.Load(tokenizers.Dir(b, name))
		if err != nil {
			b.Fatal(err)
		}
		lib, err := Load(tokenizers.Dir(b, name))
		if err != nil {
			b.Fatal(err)
		}
		for engine, encode := range map[string]func([]uint32, string, bool) ([]uint32, error){"go": own.Encode, "rust": lib.Encode} {
			b.Run(name+"/"+engine, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				var ids []uint32
				for b.Loop() {
					var err error
					if ids, err = encode(ids[:0], text, false); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		if err := lib.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
