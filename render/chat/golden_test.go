package chat_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/render/chat"
	"github.com/kvscout/kvscout/render/pyval"
	"github.com/kvscout/kvscout/render/pyval/pyvaltest"
)

// frozen is the time at which testdata/oracle was made.
func frozen() time.Time { return time.Date(2026, 3, 7, 9, 5, 3, 0, time.UTC) }

// oracle reads a file of testdata/oracle, which transformers or Jinja wrote.
func oracle(t testing.TB, name string) *pyval.Dict {
	t.Helper()
	return pyvaltest.Read(t, filepath.Join("testdata", "oracle", name))
}

func dict(d *pyval.Dict, key string) *pyval.Dict {
	v, _ := d.Get(key)
	return v.(*pyval.Dict)
}

func str(d *pyval.Dict, key string) string {
	v, _ := d.Get(key)
	s, _ := v.(string)
	return s
}

func vars(dicts ...*pyval.Dict) chat.Vars {
	vars := chat.Vars{}
	for _, d := range dicts {
		for _, e := range d.Entries() {
			vars[e.Key.(string)] = e.Value
		}
	}
	return vars
}

// TestGoldens renders every template for every conversation as transformers did: 24 x 26.
func TestGoldens(t *testing.T) {
	g := oracle(t, "goldens.json.zst")
	outputs := dict(g, "outputs")
	list, _ := g.Get("conversations")
	for _, e := range dict(g, "templates").Entries() {
		name, def := e.Key.(string), e.Value.(*pyval.Dict)
		t.Run(name, func(t *testing.T) {
			tmpl, err := chat.Parse(str(def, "src"), chat.WithClock(frozen))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range list.(*pyval.List).Items {
				conversation := c.(*pyval.Dict)
				id := name + "|" + str(conversation, "name")
				got, err := tmpl.Execute(context.Background(), vars(dict(def, "vars"), dict(conversation, "vars")))
				checkOutcome(t, id, dict(outputs, id), got, err)
			}
		})
	}
	if n := outputs.Len(); n != 24*26 {
		t.Errorf("goldens have %d outputs, want %d", n, 24*26)
	}
}

// checkOutcome compares with {"out": text} or {"err": "Type: words"}.
func checkOutcome(t *testing.T, id string, want *pyval.Dict, got string, err error) {
	t.Helper()
	wantErr := str(want, "err")
	switch {
	case wantErr == "" && err != nil:
		t.Errorf("%s: %v, want a text", id, err)
	case wantErr == "":
		if diff := cmp.Diff(str(want, "out"), got); diff != "" {
			t.Errorf("%s (-python +go):\n%s", id, diff)
		}
	case err == nil:
		t.Errorf("%s: no error, Python says %s; text %q", id, wantErr, got)
	default:
		checkKind(t, id, wantErr, err)
	}
}

// checkKind holds the error's kind and, for raise_exception, its words against Python's.
func checkKind(t *testing.T, id, want string, err error) {
	t.Helper()
	var e *chat.Error
	if !errors.As(err, &e) {
		t.Errorf("%s: %v is no *chat.Error", id, err)
		return
	}
	if words, raised := strings.CutPrefix(want, "TemplateError: "); raised {
		if !errors.Is(err, chat.ErrRaised) || e.Message != words {
			t.Errorf("%s: %v with message %q, want ErrRaised with %q", id, err, e.Message, words)
		}
		return
	}
	if !errors.Is(err, chat.ErrTemplate) {
		t.Errorf("%s: %v, want ErrTemplate for %s", id, err, want)
	}
}

// notExact are the snippets that we refuse, at load or when they run, though Jinja renders them.
var notExact = []string{
	"'nosuch' is filter", "'a' is odd", ".__class__", "{{ self }}", "'٣'|int",
}

// TestSnippets renders small templates, each about one behaviour of Jinja, as Jinja did.
func TestSnippets(t *testing.T) {
	s := oracle(t, "snippets.json.zst")
	v := vars(dict(s, "vars"))
	list, _ := s.Get("snippets")
	for _, item := range list.(*pyval.List).Items {
		want := item.(*pyval.Dict)
		src := str(want, "src")
		tmpl, err := chat.Parse(src, chat.WithClock(frozen))
		if _, broken := want.Get("syntax"); broken {
			if err == nil {
				t.Errorf("%q compiles, in Jinja it does not", src)
			}
			continue
		}
		var got string
		if err == nil {
			got, err = tmpl.Execute(context.Background(), v)
		}
		if errors.Is(err, chat.ErrUnsupported) || errors.Is(err, chat.ErrSyntax) {
			if !slices.ContainsFunc(notExact, func(s string) bool { return strings.Contains(src, s) }) {
				t.Errorf("%q: %v", src, err)
			}
			continue
		}
		checkOutcome(t, src, want, got, err)
	}
	if n := len(list.(*pyval.List).Items); n < 990 {
		t.Errorf("%d snippets, want at least 990", n)
	}
}
