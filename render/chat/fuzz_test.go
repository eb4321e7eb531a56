package chat_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kvscout/kvscout/render/chat"
	"github.com/kvscout/kvscout/render/pyval"
)

// FuzzTemplate parses and executes whatever comes: no panic, no more than the limits, errors of known kinds.
func FuzzTemplate(f *testing.F) {
	s := oracle(f, "snippets.json.zst")
	list, _ := s.Get("snippets")
	for _, item := range list.(*pyval.List).Items {
		f.Add(str(item.(*pyval.Dict), "src"))
	}
	for _, e := range dict(oracle(f, "goldens.json.zst"), "templates").Entries() {
		f.Add(str(e.Value.(*pyval.Dict), "src"))
	}
	v := vars(dict(s, "vars"))
	v["messages"] = pyval.NewList(pyval.NewDict("role", "user", "content", "x"))
	f.Fuzz(func(t *testing.T, src string) {
		tmpl, err := chat.Parse(src, chat.WithMaxSteps(100_000), chat.WithMaxBytes(4<<20), chat.WithMaxText(1<<20), chat.WithMaxDepth(40))
		if err == nil {
			tmpl.LoopsOverContent()
			_, err = tmpl.Execute(context.Background(), v)
		}
		var e *chat.Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%v is no *chat.Error", err)
		}
	})
}
