package chat_test

import (
	"context"
	"testing"

	"github.com/kvscout/kvscout/render/chat"
	"github.com/kvscout/kvscout/render/pyval"
)

// BenchmarkExecute renders the conversation of 41 messages, about 25 KB.
func BenchmarkExecute(b *testing.B) {
	g := oracle(b, "goldens.json.zst")
	list, _ := g.Get("conversations")
	items := list.(*pyval.List).Items
	long := items[len(items)-1].(*pyval.Dict)
	for _, e := range dict(g, "templates").Entries() {
		def := e.Value.(*pyval.Dict)
		tmpl, err := chat.Parse(str(def, "src"), chat.WithClock(frozen))
		if err != nil {
			b.Fatal(err)
		}
		v := vars(dict(def, "vars"), dict(long, "vars"))
		b.Run(e.Key.(string), func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				out, err := tmpl.Execute(context.Background(), v)
				if err != nil {
					b.Skip(err)
				}
				n = len(out)
			}
			b.SetBytes(int64(n))
		})
	}
}

// BenchmarkParse compiles the largest template.
func BenchmarkParse(b *testing.B) {
	src := str(dict(dict(oracle(b, "goldens.json.zst"), "templates"), "Kimi-K3"), "src")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := chat.Parse(src); err != nil {
			b.Fatal(err)
		}
	}
}
