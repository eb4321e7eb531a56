package render

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// dialPause is how long a call waits before it dials once more.
const dialPause = 50 * time.Millisecond

// ask sends the body and reads the answer. It sends once more in two cases, both safe because nothing was rendered: no
// connection could be made, or the server has no such route but may have another.
func (c *Client) ask(ctx context.Context, req Request) (rendered, error) {
	body, err := c.lean(req)
	if err != nil {
		return rendered{}, err
	}
	req.Body = body
	tokenize := c.tokenizes.Load()
	got, err := c.exchange(ctx, req, tokenize)
	if noConnection(err) && pause(ctx, dialPause) {
		got, err = c.exchange(ctx, req, tokenize)
	}
	var failed *Error
	if protocols[c.opts.Protocol].tokenizes && errors.As(err, &failed) && failed.Reason == ReasonNoRoute {
		// A server that was replaced by another may have the other route.
		if second, err2 := c.exchange(ctx, req, !tokenize); err2 == nil || !errors.Is(err2, ErrNoRoute) {
			c.tokenizes.Store(!tokenize)
			return second, err2
		}
	}
	return got, err
}

// noConnection says whether err is that of a connection that could not be made.
func noConnection(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// pause waits; it is false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lean asks for an answer without media tensors, which may be megabytes of it. It is the only change to a body, and one
// that changes no token.
func (c *Client) lean(req Request) ([]byte, error) {
	if !protocols[c.opts.Protocol].lean || req.Path != PathChat || !hasMedia(req.Body) {
		return req.Body, nil
	}
	body, err := Edit{Set: map[string]json.RawMessage{"return_mm_kwargs": json.RawMessage("false")}}.Apply(req.Body)
	if err != nil {
		return req.Body, nil // the renderer will refuse it in its own words
	}
	return body, nil
}

// exchange sends the body once. Its errors are *Errors, or those of the transport as they came.
func (c *Client) exchange(ctx context.Context, req Request, tokenize bool) (rendered, error) {
	f := form{protocol: protocols[c.opts.Protocol], list: req.Path == PathCompletions, tokens: tokenize}
	path := req.Path + "/render"
	if tokenize {
		path = pathTokenize
	} else if f.tokenizes && f.list { // sglang-renderer
		f.copies = copiesOf(req.Body)
	}
	post, err := c.newRequest(ctx, http.MethodPost, path, bytes.NewReader(req.Body))
	if err != nil {
		return rendered{}, err
	}
	if err := forward(post.Header, req.Header); err != nil {
		return rendered{}, err
	}
	post.Header.Set("Content-Type", "application/json")
	if c.opts.Propagate != nil {
		c.opts.Propagate(ctx, post.Header) // last: the caller may have named another trace
	}
	c.counters.sent.Add(uint64(len(req.Body)))
	resp, err := c.transport.RoundTrip(post) // not http.Client: no redirects, no cookies
	if err != nil {
		return rendered{}, err
	}
	// Closed before it is read to its end, an answer takes its connection with it: that is what stops an endless one.
	defer resp.Body.Close()
	got, err := c.read(resp, f)
	return got, withStatus(err, resp.StatusCode)
}

// copiesOf is the body's n, 1 without one.
func copiesOf(body []byte) int {
	n := 1
	// A body that cannot be read is left to the renderer to refuse.
	_ = EachMember(body, func(m Member) error {
		if v, err := strconv.Atoi(string(m.Value)); m.Name == "n" && err == nil && v > 0 {
			n = min(v, maxCopies)
		}
		return nil
	})
	return n
}

// maxCopies bounds n, as OpenAI's API does.
const maxCopies = 128

// read makes prompts, or an *Error, of an answer.
func (c *Client) read(resp *http.Response, f form) (rendered, error) {
	body := &meter{src: resp.Body, limit: c.opts.MaxResponse, total: &c.counters.received}
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return rendered{}, contractf("content encoding %.20q was not asked for", enc)
	}
	if resp.StatusCode != http.StatusOK {
		return rendered{}, refused(resp, body)
	}
	if resp.ContentLength > c.opts.MaxResponse {
		return rendered{}, tooLargef("answer of %d bytes, limit %d", resp.ContentLength, c.opts.MaxResponse)
	}
	prompts, fingerprint, err := decodeAnswer(body, f, limits{tokens: c.opts.MaxTokens, prompts: c.opts.MaxPrompts})
	return rendered{prompts, fingerprint}, err
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
