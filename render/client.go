package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Client renders by asking a remote renderer over HTTP. It is safe for concurrent use.
type Client struct {
	opts      Options // with defaults
	base      string  // URL without a trailing slash
	name      string  // Result.Renderer
	transport http.RoundTripper
	owned     *http.Transport // transport if it is the client's own, else nil
	gate      *gate
	breaker   *breaker
	probed    atomic.Pointer[Error] // the fault that the last probe of Watch found, nil for none
	tokenizes atomic.Bool           // the server has no render routes but pathTokenize
	counters  counters

	fingerprint atomic.Pointer[string] // of the last answer; nil before it
}

var (
	_ Renderer = (*Client)(nil)
	_ Checker  = (*Client)(nil)
)

// NewClient makes a client. It connects to nothing yet. It errs with ErrOptions, naming every fault.
func NewClient(opts Options) (*Client, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	base, err := parseBase(opts.URL)
	if err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	c := &Client{
		opts:      opts,
		base:      strings.TrimRight(base.String(), "/"),
		name:      opts.Protocol + "@" + base.Host,
		transport: opts.Transport,
		gate:      newGate(opts.Concurrency, opts.Queue),
		breaker:   newBreaker(opts.BreakAfter, opts.BreakFor),
	}
	if c.transport == nil {
		c.owned = newTransport(opts.Concurrency)
		c.transport = c.owned
	}
	return c, nil
}

func newTransport(conns int) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // the Python server speaks nothing newer
	return &http.Transport{
		Protocols:           protocols,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConns:        conns,
		MaxIdleConnsPerHost: conns,
		// Below uvicorn's 5 s, so that no request meets a connection which the renderer is just closing.
		IdleConnTimeout:        4 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}
}

// Close ends the connections that no call uses. Calls that run go on; it is to be called after the last one.
func (c *Client) Close() {
	if c.owned != nil {
		c.owned.CloseIdleConnections()
	}
}

// Render asks the renderer for the prompts of req. It errs with an *Error, or with context.Canceled if ctx was
// cancelled.
func (c *Client) Render(ctx context.Context, req Request) (Result, error) {
	start := time.Now()
	c.counters.calls.Add(1)
	got, err := c.render(ctx, req)
	c.counters.ended(err)
	if err != nil {
		return Result{}, err
	}
	if last := c.fingerprint.Load(); last == nil || *last != got.fingerprint {
		c.fingerprint.Store(&got.fingerprint)
	}
	return Result{Prompts: got.prompts, Renderer: c.name, Fingerprint: got.fingerprint, Duration: time.Since(start)}, nil
}

// rendered is what an answer says.
type rendered struct {
	prompts     []Prompt
	fingerprint string
}

func (c *Client) render(ctx context.Context, req Request) (got rendered, err error) {
	switch {
	case req.Path != PathChat && req.Path != PathCompletions:
		return got, failf(ReasonPath, "%.100q is neither %s nor %s", req.Path, PathChat, PathCompletions)
	case int64(len(req.Body)) > c.opts.MaxBody:
		return got, failf(ReasonBodyTooLarge, "%d bytes, limit %d", len(req.Body), c.opts.MaxBody)
	}
	done, err := c.breaker.allow()
	if err != nil {
		return got, err
	}
	patience := c.patience(req.Body)
	callCtx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// A caller that gives less time than the renderer may take, or media to fetch, says nothing of the renderer's health.
	own, _ := ctx.Deadline()
	fair := patience == c.opts.Timeout && (own.IsZero() || time.Until(own) > patience)
	defer func() { done(err, fair) }()
	if err := c.enter(ctx, callCtx); err != nil {
		return got, err
	}
	defer c.gate.leave()
	if got, err = c.ask(callCtx, req); err != nil {
		return got, typed(ctx, callCtx, err)
	}
	return got, nil
}

// mediaHints are the keys of content parts that carry media. In user text they only lengthen the deadline.
var mediaHints = [][]byte{
	[]byte(`"image_url"`), []byte(`"input_audio"`), []byte(`"audio_url"`), []byte(`"video_url"`),
}

func hasMedia(body []byte) bool {
	return slices.ContainsFunc(mediaHints, func(hint []byte) bool { return bytes.Contains(body, hint) })
}

// patience is the longest a call with this body may last.
func (c *Client) patience(body []byte) time.Duration {
	if hasMedia(body) {
		return c.opts.MediaTimeout
	}
	return c.opts.Timeout
}

// enter takes a slot of the gate, until callCtx ends.
func (c *Client) enter(ctx, callCtx context.Context) error {
	err := c.gate.enter(callCtx)
	switch {
	case err == nil:
		return nil
	case canceled(ctx):
		return fmt.Errorf("render: %w", context.Canceled)
	case errors.Is(err, errQueueFull):
		return failf(ReasonOverloaded, "%d calls running and %d waiting", c.opts.Concurrency, c.opts.Queue)
	default:
		return failf(ReasonOverloaded, "no slot of %d became free in time", c.opts.Concurrency)
	}
}

// typed makes the error of an exchange what callers match: an *Error, or the caller's own cancellation.
func typed(ctx, callCtx context.Context, err error) error {
	var already *Error
	var network net.Error
	switch {
	case canceled(ctx):
		return fmt.Errorf("render: %w", context.Canceled)
	case errors.As(err, &already):
		return already
	case callCtx.Err() != nil, errors.As(err, &network) && network.Timeout():
		return &Error{Reason: ReasonTimeout, cause: context.DeadlineExceeded}
	default:
		// Cut, because net/http quotes what it cannot read.
		return failf(ReasonDown, "%.200s", err.Error())
	}
}

func canceled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }
