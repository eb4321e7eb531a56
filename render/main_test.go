package render

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden is one request body and what vLLM 0.32 answered to it.
type golden struct {
	Name     string          `json:"name"`
	Path     string          `json:"path"`
	Body     *string         `json:"body"`
	Base64   []byte          `json:"body_base64"`
	Status   int             `json:"status"`
	TokenIDs [][]uint32      `json:"token_ids"`
	Model    *string         `json:"model"`
	Salt     *string         `json:"cache_salt"`
	Response json.RawMessage `json:"response"`
}

func (g golden) body() []byte {
	if g.Body != nil {
		return []byte(*g.Body)
	}
	return g.Base64
}

// goldens reads the recorded bodies, by file. There are 94 in each of three files.
func goldens(t testing.TB) map[string][]golden {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "test", "testdata", "render", "render-vllm-*.jsonl"))
	if err != nil || len(files) != 3 {
		t.Fatalf("found %d files of goldens (%v), want 3", len(files), err)
	}
	all := map[string][]golden{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list []golden
		dec := json.NewDecoder(bytes.NewReader(data))
		for dec.More() {
			var g golden
			if err := dec.Decode(&g); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			list = append(list, g)
		}
		if len(list) != 94 {
			t.Fatalf("%s has %d goldens, want 94", file, len(list))
		}
		all[filepath.Base(file)] = list
	}
	return all
}

// serve starts a server and a client for it. edit may change the client's options.
func serve(t testing.TB, h http.HandlerFunc, edit ...func(*Options)) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return dial(t, server.URL, edit...)
}

func dial(t testing.TB, url string, edit ...func(*Options)) *Client {
	t.Helper()
	opts := Options{URL: url, Protocol: ProtocolVLLM}
	for _, e := range edit {
		e(&opts)
	}
	c, err := NewClient(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// answering is a handler that always says the same.
func answering(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// hanging is a handler that reads the request and never answers; it ends with the request.
func hanging(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func chat(t testing.TB, c *Client) (Result, error) {
	t.Helper()
	return c.Render(t.Context(), Request{Path: PathChat, Body: []byte(`{"messages":[]}`)})
}

// within returns a context that ends after d.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// decode reads an answer of vLLM's form.
func decode(r io.Reader, list bool, lim limits) ([]Prompt, error) {
	prompts, _, err := decodeAnswer(r, form{protocol: protocols[ProtocolVLLM], list: list}, lim)
	return prompts, err
}

// overHTTP is what a client for vLLM sends of a recorded body: the body, but that it asks for no media tensors.
func (g golden) overHTTP() []byte {
	if body := g.body(); bytes.Contains(body, []byte(`"image_url"`)) {
		return append([]byte(`{"return_mm_kwargs":false,`), body[1:]...)
	}
	return g.body()
}
