package render

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// Health asks whether the renderer is up: GET /health. It errs as Render does, is bounded by Options.Timeout, takes no
// slot and shows in no counter.
func (c *Client) Health(ctx context.Context) error {
	callCtx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	if err := c.probe(callCtx); err != nil {
		return typed(ctx, callCtx, err)
	}
	return nil
}

// Watch asks for the renderer's health at once and then at each interval, until ctx ends. Ready tells what it found.
func (c *Client) Watch(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		var fault *Error
		if err := c.Health(ctx); err == nil {
			c.probed.Store(nil)
		} else if errors.As(err, &fault) {
			c.probed.Store(fault)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Ready is nil, or the fault for which the renderer is not used now: its circuit is open, or it failed the last probe
// of Watch.
func (c *Client) Ready() error {
	if err := c.breaker.fault(); err != nil {
		return err
	}
	if fault := c.probed.Load(); fault != nil {
		return fault
	}
	return nil
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
