package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

func TestEdit_Apply(t *testing.T) {
	strip := Edit{Strip: []string{"nvext"}}
	model := Edit{Set: map[string]json.RawMessage{"model": json.RawMessage(`"base"`)}}
	both := Edit{Strip: []string{"nvext", "x"}, Set: model.Set}
	for _, c := range []struct {
		name       string
		edit       Edit
		body, want string
	}{
		{"nothing to do", Edit{}, ` no json`, ` no json`},
		{"absent", strip, `{"a":1}`, `{"a":1}`},
		{"first", strip, `{"nvext":{"a":[1,"}"]}, "b" : 1.0 }`, `{"b" : 1.0 }`},
		{"middle", strip, `{"a":1, "nvext":null ,"b":2}`, `{"a":1, "b":2}`},
		{"last", strip, `{"a":1 , "nvext":{} }`, `{"a":1 }`},
		{"only", strip, ` { "nvext" : 1 } `, ` {  } `},
		{"repeated", strip, `{"nvext":1,"nvext":2,"a":1e2,"nvext":3,"nvext":4}`, `{"a":1e2}`},
		{"escaped name", strip, `{"nve\u0078t":1,"a":"\u00e9é"}`, `{"a":"\u00e9é"}`},
		{"deeper ones stay", strip, `{"a":{"nvext":1},"b":[{"nvext":2}]}`, `{"a":{"nvext":1},"b":[{"nvext":2}]}`},
		{"in place", model, `{"a":1,"model":"lora" , "b":2}`, `{"a":1,"model":"base" , "b":2}`},
		{"each of them", model, `{"model":"x","model":{"a":1}}`, `{"model":"base","model":"base"}`},
		{"in front", model, `{ "a":1}`, `{ "model":"base","a":1}`},
		{"into nothing", model, `{}`, `{"model":"base"}`},
		{"both", both, `{"nvext":1,"model":"l","x":2}`, `{"model":"base"}`},
		{"both, in front", both, `{"nvext":1,"a":2,"x":3}`, `{"model":"base","a":2}`},
		{"both, all gone", both, `{"nvext":1}`, `{"model":"base"}`},
		{"byte order mark", strip, "\ufeff{\"nvext\":1,\"a\":NaN}", "\ufeff{\"a\":NaN}"},
	} {
		got, err := c.edit.Apply([]byte(c.body))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v\nwant %s", c.name, got, err, c.want)
		}
	}
	for _, body := range []string{"", "[]", `{"a":1`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1}{}`, `{"a":1 2}`, `{"a":]}`, `{"a`, `{1:2}`} {
		if _, err := strip.Apply([]byte(body)); !errors.Is(err, ErrNoObject) {
			t.Errorf("%q: %v, want ErrNoObject", body, err)
		}
	}
}

// FuzzEdit_Apply: of a JSON object, the edited text decodes to the edited object, and whatever encoding/json takes for
// an object the walker does too.
func FuzzEdit_Apply(f *testing.F) {
	for _, list := range goldens(f) {
		for _, g := range list {
			f.Add(g.body())
		}
	}
	f.Add([]byte(`{"nvext":1,"nvext":[],"model":{},"a":-1.5e3}`))
	edit := Edit{Strip: []string{"nvext"}, Set: map[string]json.RawMessage{"model": json.RawMessage(`5`)}}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := edit.Apply(body)
		var want map[string]json.RawMessage
		if json.Unmarshal(body, &want) != nil || want == nil {
			return // nothing to compare with; it must only not panic
		}
		if err != nil {
			t.Fatalf("%v of a JSON object", err)
		}
		delete(want, "nvext")
		want["model"] = json.RawMessage(`5`)
		var have map[string]json.RawMessage
		if err := json.Unmarshal(got, &have); err != nil {
			t.Fatalf("%v of %q", err, got)
		}
		if len(have) != len(want) {
			t.Fatalf("got %d members, want %d", len(have), len(want))
		}
		for name, value := range want {
			if !bytes.Equal(have[name], value) {
				t.Fatalf("%q: got %q, want %q", name, have[name], value)
			}
		}
	})
}
