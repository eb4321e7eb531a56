package indexer

import (
	"context"
	"fmt"
	"testing"
)

func BenchmarkHolders(b *testing.B) {
	for _, n := range []int{1, 64, 2048} {
		x := New(Options{})
		for i := range n {
			l := benchOpen(b, x, fmt.Sprintf("w%d", i))
			for _, batch := range benchPrompt(1, 64, 1) {
				l.Apply(&batch)
			}
		}
		tokens := Query{Model: "m", Tokens: benchTokens(1, 64*benchBlock)}
		keys := Query{Model: "m", KeySize: benchBlock, Keys: Keys(tokens.Tokens, nil, benchBlock, false, Namespace{})}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			r := x.NewReader()
			for b.Loop() {
				h, _ := r.Holders(context.Background(), &keys)
				if len(h) != n {
					b.Fatal(len(h))
				}
			}
		})
	}
}
