package render

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// endless writes piece until the client hangs up or 1 GB is out, and counts what went out.
func endless(first, piece string, sent *atomic.Int64) http.HandlerFunc {
	chunk := []byte(strings.Repeat(piece, 64<<10/len(piece)))
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, first)
		for sent.Load() < 1<<30 {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
}

// TestClient_Case76_EndlessAnswers: 1 GB of anything is stopped at a limit, and memory stays flat.
func TestClient_Case76_EndlessAnswers(t *testing.T) {
	for name, c := range map[string]struct{ first, piece string }{
		"ids":         {`{"token_ids":[1`, `,12345`},
		"white space": {``, ` `},
		"string":      {`{"kwargs_data":"`, `A`},
		"key":         {`{"`, `A`},
		"items":       {`{"x":[0`, `,{"a":[null]}`},
		"members":     {`{"x":{"a":0`, `,"a":0`},
		"number":      {`{"x":1`, `1`},
		"hash":        {`{"token_ids":[1],"features":{"mm_hashes":{"image":["`, `a`},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			client := serve(t, endless(c.first, c.piece, &sent), func(o *Options) { o.MaxResponse, o.MaxTokens = 8<<20, 100_000 })
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := chat(t, client); !errors.Is(err, ErrTooLarge) {
				t.Errorf("got %v, want ErrTooLarge", err)
			}
			runtime.ReadMemStats(&after)
			// Server included; 100,000 ids grow to less than 2 MB in sum.
			if grew := after.TotalAlloc - before.TotalAlloc; grew > 6<<20 {
				t.Errorf("allocated %d bytes", grew)
			}
			if got := client.Stats().BytesReceived; got > 8<<20+1 {
				t.Errorf("read %d bytes", got)
			}
		})
	}
}

// TestClient_Case76_AnnouncedSize: an answer that announces too much is not even begun.
func TestClient_Case76_AnnouncedSize(t *testing.T) {
	c := serve(t, answering(200, `{"token_ids":[1]}`+strings.Repeat(" ", 5000), "Content-Length", "5017"), func(o *Options) { o.MaxResponse = 4000 })
	if _, err := chat(t, c); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
	if got := c.Stats().BytesReceived; got != 0 {
		t.Errorf("read %d bytes", got)
	}
}

// TestClient_ResponseLimit: at the limit is fine, one byte over is not, with and without an announced size.
func TestClient_ResponseLimit(t *testing.T) {
	const body = `{"token_ids":[1,2,3]}`
	for _, chunked := range []bool{false, true} {
		for limit, want := range map[int64]error{int64(len(body)): nil, int64(len(body)) - 1: ErrTooLarge} {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if chunked {
					_ = http.NewResponseController(w).Flush()
				}
				_, _ = io.WriteString(w, body)
			}, func(o *Options) { o.MaxResponse = limit })
			if _, err := chat(t, c); !errors.Is(err, want) {
				t.Errorf("chunked %v, limit %d: got %v, want %v", chunked, limit, err, want)
			}
		}
	}
}

// TestClient_Case76_GzipBomb: a compressed answer, never asked for, is refused and not unpacked. A foreign transport that
// unpacks whatever it gets is held to the same limits.
func TestClient_Case76_GzipBomb(t *testing.T) {
	// gzip members follow each other: a thousand times the same MB is a GB.
	bomb := zipped(t, `{"kwargs_data":"`) + strings.Repeat(zipped(t, strings.Repeat("A", 1<<20)), 1000)
	handler := answering(200, bomb, "Content-Encoding", "gzip")
	if _, err := chat(t, serve(t, handler)); !errors.Is(err, ErrContract) {
		t.Errorf("own transport: got %v, want ErrContract", err)
	}
	foreign := &unpacking{next: &http.Transport{DisableKeepAlives: true}}
	c := serve(t, handler, func(o *Options) { o.Transport, o.MaxResponse = foreign, 1<<20 })
	if _, err := chat(t, c); !errors.Is(err, ErrTooLarge) {
		t.Errorf("unpacking transport: got %v, want ErrTooLarge", err)
	}
	if got := c.Stats().BytesReceived; got != 1<<20+1 {
		t.Errorf("read %d bytes", got)
	}
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = io.WriteString(z, text)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// unpacking is a transport that decompresses without being asked.
type unpacking struct{ next http.RoundTripper }

func (u *unpacking) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{z, resp.Body}
	resp.Header.Del("Content-Encoding")
	resp.ContentLength = -1
	return resp, nil
}

// TestClient_ErrorsAreSilent: no error text repeats the prompt, the ids, the answer or the credentials.
func TestClient_ErrorsAreSilent(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"refusal":   answering(400, `{"error":{"message":"hunter2 987654","type":"BadRequestError"}}`),
		"bad id":    answering(200, `{"token_ids":[987654,-987654]}`),
		"large id":  answering(200, `{"token_ids":[98765498765498765]}`),
		"html":      answering(200, `<html>hunter2</html>`),
		"bad hash":  answering(200, `{"token_ids":[987654],"features":{"hunter2":1}}`),
		"follows":   answering(200, `{"token_ids":[987654]}hunter2`),
		"status":    answering(418, `hunter2`),
		"no access": answering(401, `{"error":"hunter2"}`),
	} {
		c := serve(t, h, func(o *Options) { o.BearerToken = "hunter2" })
		_, err := c.Render(t.Context(), Request{Path: PathChat, Body: []byte(`hunter2`), Header: http.Header{"X-A": {"hunter2"}}})
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "98765") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
