package scorerpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/indexer/indexrpc"
)

func TestScanBody(t *testing.T) {
	tests := []struct {
		name, body string
		want       bodyFacts
	}{
		{"empty", `{}`, bodyFacts{}},
		{"both", ` { "model" : "m" , "cache_salt":"s" } `, bodyFacts{model: "m", salt: "s"}},
		{"mark of bytes", "\ufeff{\"model\":\"m\"}", bodyFacts{model: "m"}},
		{"last of several counts", `{"model":"a","cache_salt":"a","cache_salt":"b","model":"b"}`, bodyFacts{model: "b", salt: "b"}},
		{"null takes back", `{"cache_salt":"a","cache_salt":null,"model":"a","model":null}`, bodyFacts{}},
		{"escaped names", `{"cache\u005fsalt":"\u0073\n\u00e9\"","mo\u0064el":"\ud83d\ude00"}`, bodyFacts{model: "😀", salt: "s\né\""}},
		{"only the top level", `{"a":{"cache_salt":"x","model":"y"},"b":[{"cache_salt":"z"}]}`, bodyFacts{}},
		{"names inside of text", `{"prompt":"\"cache_salt\":\"x\"","stop":["cache_salt"]}`, bodyFacts{}},
		{"numbers of Python", `{"temperature":NaN,"top_p":-Infinity,"cache_salt":"s"}`, bodyFacts{salt: "s"}},
		{"model no string", `{"model":5,"cache_salt":"s"}`, bodyFacts{salt: "s"}},
		{"image", `{"messages":[{"content":[{"type":"image_url","image_url":{}}]}]}`, bodyFacts{media: true}},
		{"image without type", `{"messages":[{"content":[{"image_url":"data:"}]}]}`, bodyFacts{media: true}},
		{"audio", `{"messages":[{"content":[{"type":"input_audio"}]}]}`, bodyFacts{media: true}},
		{"video", `{"messages":[{"content":[{"type":"video"}]}],"model":"m"}`, bodyFacts{media: true, model: "m"}},
		{"text only", `{"messages":[{"content":[{"type":"text","text":"image_url"}]}]}`, bodyFacts{}},
		{"image of a tool's schema", `{"messages":[],"tools":[{"image_url":{"type":"image"}}]}`, bodyFacts{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := scanBody([]byte(tt.body))
			if err != nil || got != tt.want {
				t.Errorf("facts = %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}

// What cannot be told is refused, and no refusal quotes the body.
func TestScanBody_Refuses(t *testing.T) {
	for _, body := range []string{
		"", " ", "null", "[]", `"x"`, "{", `{"a":"`, `{"a":"secret\`, `{"cache_salt":"secret`, `{"model":"\`, "{}{}", "{} x", "{}\x00",
		`{"cache_salt":5}`, `{"cache_salt":["secret"]}`, `{"cache_salt":{"a":"b"}}`, `{"cache_salt":`, `{"cache_salt"`,
		// Lone surrogates, bytes that are no UTF-8, broken escapes: two of them must not become one salt.
		`{"cache_salt":"secret\ud800"}`, "{\"cache_salt\":\"secret\xff\"}", `{"cache_salt":"\q"}`, `{"model":"\q"}`,
	} {
		_, err := scanBody([]byte(body))
		var e *indexrpc.Error
		if !errors.As(err, &e) || e.Reason != indexrpc.ReasonBadBody {
			t.Errorf("%q: %v, want BAD_BODY", body, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is quoted in %q", body, err)
		}
	}
}

// Of every recorded body that vLLM 0.32 took, the facts are those that it answered with.
func TestScanBody_AgreesWithVLLM(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "test", "testdata", "render", "render-vllm-*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	bodies, salted := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
			var g struct {
				Name   string  `json:"name"`
				Body   *string `json:"body"`
				Base64 []byte  `json:"body_base64"`
				Status int     `json:"status"`
				Model  string  `json:"model"`
				Salt   string  `json:"cache_salt"`
			}
			if err := dec.Decode(&g); err != nil {
				t.Fatal(err)
			}
			if g.Status != 200 {
				continue
			}
			body := g.Base64
			if g.Body != nil {
				body = []byte(*g.Body)
			}
			got, err := scanBody(body)
			// The answer names the served model also for a body that names none.
			if err != nil || got.salt != g.Salt || got.model != "" && got.model != g.Model || got.media {
				t.Errorf("%s: %+v, %v, want model %q, salt %q, no media", g.Name, got, err, g.Model, g.Salt)
			}
			bodies++
			if got.salt != "" {
				salted++
			}
		}
	}
	if bodies < 100 || salted < 2 {
		t.Errorf("only %d bodies, %d of them salted", bodies, salted)
	}
}

// Of every JSON object the scan tells what encoding/json does, or refuses a salt that is no text. It never panics.
func FuzzBodyScan(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","cache_salt":"s","messages":[{"content":[{"type":"image_url"}]}]}`, `{"cache\u005fsalt":"\ud83d\ude00"}`,
		`{"a":{"cache_salt":"x"},"cache_salt":null}`, `{"cache_salt":"a","cache_salt":"\\"}`, `{`, `{"a":"\`, "\ufeff{}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := scanBody(body)
		var e *indexrpc.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("error without a reason: %v", err)
		}
		var fields map[string]json.RawMessage
		if !utf8.Valid(body) || json.Unmarshal(body, &fields) != nil || fields == nil {
			return
		}
		want := bodyFacts{media: got.media}
		saltErr := json.Unmarshal(orNull(fields["cache_salt"]), &want.salt)
		_ = json.Unmarshal(orNull(fields["model"]), &want.model) // a model that is no string is left to the renderer
		if err != nil {
			// Either the last salt is refused, or an earlier one of the same name was.
			if saltErr == nil && !strings.ContainsRune(want.salt, utf8.RuneError) && bytes.Count(body, []byte(`salt`)) < 2 && !bytes.Contains(body, []byte(`\u`)) {
				t.Fatalf("%q refused: %v", body, err)
			}
			return
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(bodyFacts{})); saltErr == nil && diff != "" {
			t.Fatalf("%q (-encoding/json +scan):\n%s", body, diff)
		}
	})
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}
