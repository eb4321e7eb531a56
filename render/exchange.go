package render

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// exchange sends the body and reads the answer. Its errors are *Errors, or those of the transport as they came.
func (c *Client) exchange(ctx context.Context, req Request) ([]Prompt, error) {
	post, err := c.newRequest(ctx, http.MethodPost, req.Path+"/render", bytes.NewReader(req.Body))
	if err != nil {
		return nil, err
	}
	if err := forward(post.Header, req.Header); err != nil {
		return nil, err
	}
	post.Header.Set("Content-Type", "application/json")
	c.counters.sent.Add(uint64(len(req.Body)))
	resp, err := c.transport.RoundTrip(post) // not http.Client: no redirects, no cookies
	if err != nil {
		return nil, err
	}
	// Closed before it is read to its end, an answer takes its connection with it: that is what stops an endless one.
	defer resp.Body.Close()
	prompts, err := c.read(resp, req.Path == PathCompletions)
	return prompts, withStatus(err, resp.StatusCode)
}

// read makes prompts, or an *Error, of an answer.
func (c *Client) read(resp *http.Response, list bool) ([]Prompt, error) {
	body := &meter{src: resp.Body, limit: c.opts.MaxResponse, total: &c.counters.received}
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, contractf("content encoding %.20q was not asked for", enc)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, refused(resp, body)
	}
	if resp.ContentLength > c.opts.MaxResponse {
		return nil, tooLargef("answer of %d bytes, limit %d", resp.ContentLength, c.opts.MaxResponse)
	}
	return decodeAnswer(body, list, limits{tokens: c.opts.MaxTokens, prompts: c.opts.MaxPrompts})
}

// probe asks for /health.
func (c *Client) probe(ctx context.Context) error {
	get, err := c.newRequest(ctx, http.MethodGet, "/health", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := c.transport.RoundTrip(get)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var uncounted atomic.Uint64
	body := &meter{src: resp.Body, limit: maxRefusal, total: &uncounted}
	if resp.StatusCode/100 != 2 {
		return refused(resp, body)
	}
	_, _ = io.Copy(io.Discard, body) // only so that the connection can be kept
	return nil
}

func (c *Client) newRequest(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", "identity") // also keeps a foreign transport from decompressing
	req.Header.Set("User-Agent", "kvscout")
	if c.opts.BearerToken != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.BearerToken)
	}
	return req, nil
}

// meter reads at most limit bytes of src, then errs with ErrTooLarge. It counts them in total.
type meter struct {
	src   io.Reader
	limit int64
	read  int64
	total *atomic.Uint64
}

func (m *meter) Read(p []byte) (int, error) {
	if room := m.limit - m.read; int64(len(p)) > room {
		p = p[:room+1] // one byte more tells "at the limit" from "over it"
	}
	n, err := m.src.Read(p)
	m.total.Add(uint64(n))
	if m.read += int64(n); m.read > m.limit {
		return 0, tooLargef("answer is longer than %d bytes", m.limit)
	}
	return n, err
}
