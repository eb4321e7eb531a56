//go:build hftokenizers

package hf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/render/token"
	"github.com/kvscout/kvscout/test/tokenizers"
)

// BenchmarkEngines encodes the same text by both engines in one run: this repository's documents and code, 25 KB as a
// long conversation has. Both have caches of words, warm after the first round.
func BenchmarkEngines(b *testing.B) {
	var paths []string
	for _, pattern := range []string{"../../../docs/*.md", "../[a-m]*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			b.Fatal(err)
		}
		paths = append(paths, found...)
	}
	var all strings.Builder
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		all.Write(data[:min(len(data), 2000)])
	}
	if all.Len() < 25_000 {
		b.Fatalf("%d bytes of text", all.Len())
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
		for _, engine := range []struct {
			name   string
			encode func([]uint32, string, bool) ([]uint32, error)
		}{{"go", own.Encode}, {"rust", lib.Encode}} {
			b.Run(name+"/"+engine.name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				var ids []uint32
				for b.Loop() {
					var err error
					if ids, err = engine.encode(ids[:0], text, false); err != nil {
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
