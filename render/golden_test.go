package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// envelope is the rest of an answer, as vLLM 0.32 sends it around the ids (the recorded ones of the goldens have these
// very fields). A big kwargs_data shows that what is skipped costs nothing.
const envelope = `{"request_id":"chatcmpl-9b8aee675a8c62d1","token_ids":%s,"token_offsets":null,"features":null,
"content_parts":null,"sampling_params":{"presence_penalty":0.0,"repetition_penalty":1.0,"temperature":1.0,"top_p":1.0,
"min_p":0.0,"stop":["\u201cend\u201d \ud83d\ude00"],"stop_token_ids":[],"max_tokens":2042,"output_kind":2,"skip_clone":true,
"bad_words":[],"skip_reading_prefix_cache":false},"model":%s,"reasoning_ended":null,"reasoning_parser_kwargs":null,
"return_token_ids":null,"output_mode":"tokens","stream":false,"stream_options":null,"cache_salt":%s,"priority":0,
"kv_transfer_params":null,"ec_transfer_params":{"kwargs_data":{"image":["%s"]}}}`

// reply is the recorded answer, or one built around the recorded ids where only those were kept.
func (g golden) reply(t *testing.T) []byte {
	t.Helper()
	if g.Response != nil {
		return g.Response
	}
	var elements []string
	for _, ids := range g.TokenIDs {
		elements = append(elements, fmt.Sprintf(envelope, asJSON(t, ids), asJSON(t, g.Model), asJSON(t, g.Salt), strings.Repeat("QUJD", 20000)))
	}
	if g.Path == PathChat {
		return []byte(elements[0])
	}
	return []byte("[" + strings.Join(elements, ",") + "]")
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// goldenServer answers the body of g, and fails the test for any other.
func goldenServer(t *testing.T, g *golden) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Equal(got, g.overHTTP()) {
			t.Errorf("%s: server got another body (%v):\n got %q\nwant %q", g.Name, err, got, g.overHTTP())
		}
		if r.Method != http.MethodPost || r.URL.Path != g.Path+"/render" {
			t.Errorf("%s: server got %s %s", g.Name, r.Method, r.URL.Path)
		}
		if ct := r.Header.Get("Content-Type"); ct != "application/json" {
			t.Errorf("%s: content type %q", g.Name, ct)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(g.Status)
		_, _ = w.Write(g.reply(t))
	}
}

// TestClient_Goldens plays every recorded body against a server that says what vLLM said: the ids must be the recorded
// ones, and the recorded refusals typed. Case86: among them are lone surrogates and invalid UTF-8.
func TestClient_Goldens(t *testing.T) {
	for file, list := range goldens(t) {
		t.Run(file, func(t *testing.T) {
			var current golden
			c := serve(t, func(w http.ResponseWriter, r *http.Request) { goldenServer(t, &current)(w, r) })
			for _, current = range list {
				res, err := c.Render(t.Context(), Request{Path: current.Path, Body: current.body()})
				if current.Status != http.StatusOK {
					checkRefusal(t, current, err)
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", current.Name, err)
					continue
				}
				var ids [][]uint32
				for _, p := range res.Prompts {
					ids = append(ids, p.Tokens)
				}
				if diff := cmp.Diff(current.TokenIDs, ids); diff != "" {
					t.Errorf("%s: ids differ (-recorded +got):\n%s", current.Name, diff)
				}
			}
		})
	}
}

func checkRefusal(t *testing.T, g golden, err error) {
	t.Helper()
	want := map[int]error{400: ErrBadRequest, 404: ErrUnknownModel}[g.Status]
	var e *Error
	if !errors.Is(err, want) || !errors.As(err, &e) {
		t.Errorf("%s: got %v, want %v", g.Name, err, want)
		return
	}
	var recorded struct {
		Error  struct{ Message string }
		Detail string
	}
	if err := json.Unmarshal(g.Response, &recorded); err != nil {
		t.Fatal(err)
	}
	message := recorded.Error.Message + recorded.Detail
	if len(message) > maxMessage {
		message = message[:maxMessage]
	}
	if e.Message != message || message == "" || e.Status != g.Status {
		t.Errorf("%s: status %d, message %q, want %d and %q", g.Name, e.Status, e.Message, g.Status, message)
	}
	if strings.Contains(err.Error(), message) {
		t.Errorf("%s: the renderer's words are in the error text: %v", g.Name, err)
	}
}

// TestClient_Case43_PromptsStayApart: two prompts of one completion are two results, in order; a chat is one.
func TestClient_Case43_PromptsStayApart(t *testing.T) {
	several := 0
	for file, list := range goldens(t) {
		for _, g := range list {
			if len(g.TokenIDs) < 2 {
				continue
			}
			several++
			res, err := serve(t, goldenServer(t, &g)).Render(t.Context(), Request{Path: g.Path, Body: g.body()})
			if err != nil || len(res.Prompts) != len(g.TokenIDs) {
				t.Errorf("%s %s: %d prompts, want %d (%v)", file, g.Name, len(res.Prompts), len(g.TokenIDs), err)
			}
		}
	}
	if several == 0 {
		t.Fatal("no golden has several prompts")
	}
}
