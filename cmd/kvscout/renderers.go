package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/render/local"
)

// renderers are those of a server.
type renderers struct {
	models *render.Models
	// watches run as long as the server does: they look after health and files.
	watches []func(context.Context)
	closes  []func()
}

// newRenderers makes the configured renderers; nil without any. Model files that cannot be used are no error here: their
// model is then not ready, and says why.
func (o *renderOptions) newRenderers(maxTokens int, log *slog.Logger) (*renderers, error) {
	if o.url == "" && len(o.specs) == 0 {
		return nil, nil
	}
	rs := &renderers{models: &render.Models{ByModel: make(map[string]render.Renderer)}}
	if o.url != "" {
		client, err := rs.client(o, o.url, o.protocol, maxTokens)
		if err != nil {
			return nil, err
		}
		rs.models.Other = o.cached(client)
	}
	for _, spec := range o.specs {
		var made render.Renderer
		var err error
		if spec.url != "" {
			made, err = rs.client(o, spec.url, spec.protocol, maxTokens)
		} else {
			made, err = rs.local(o, &spec, maxTokens, log)
		}
		if err != nil {
			rs.close()
			return nil, err
		}
		rs.models.ByModel[spec.model] = o.cached(made)
	}
	return rs, nil
}

func (o *renderOptions) cached(r render.Renderer) render.Renderer {
	if o.cacheBytes == 0 {
		return r
	}
	return render.NewCache(r, render.CacheOptions{MaxBytes: o.cacheBytes, TTL: o.cacheTTL})
}

func (rs *renderers) client(o *renderOptions, url, protocol string, maxTokens int) (render.Renderer, error) {
	opts, err := o.clientOptions(url, protocol, maxTokens)
	if err != nil {
		return nil, err
	}
	client, err := render.NewClient(opts)
	if errors.Is(err, render.ErrPlaintextToken) {
		return nil, misuse("%w: use https, or set renderer-insecure-token if that network encrypts by itself", err)
	}
	if err != nil {
		return nil, usageError{err}
	}
	rs.watches = append(rs.watches, func(ctx context.Context) { client.Watch(ctx, o.health) })
	rs.closes = append(rs.closes, client.Close)
	return client, nil
}

func (rs *renderers) local(o *renderOptions, spec *renderSpec, maxTokens int, log *slog.Logger) (render.Renderer, error) {
	opts, err := spec.local.options()
	if err != nil {
		return nil, usageError{err}
	}
	opts.MaxTokens, opts.Timeout = maxTokens, o.timeout
	r, err := local.New(spec.tokenizer, opts)
	if err != nil {
		return nil, usageError{err}
	}
	tell := func(err error) {
		if err != nil {
			log.Error("model files cannot be used", "model", spec.model, "directory", spec.tokenizer, "loaded", r.Ready() == nil, "error", err)
			return
		}
		report := r.Report()
		log.Info("model files loaded", "model", spec.model, "directory", spec.tokenizer, "fingerprint", report.Fingerprint, "bytes", report.Memory)
	}
	tell(r.Load())
	rs.watches = append(rs.watches, func(ctx context.Context) { r.Watch(ctx, o.reload, tell) })
	return r, nil
}

// run looks after the renderers until ctx ends, and then closes them. A nil one has none.
func (rs *renderers) run(ctx context.Context) {
	if rs == nil {
		return
	}
	var wg sync.WaitGroup
	for _, watch := range rs.watches {
		wg.Go(func() { watch(ctx) }) // ended by ctx, waited for below
	}
	wg.Wait()
	rs.close()
}

func (rs *renderers) close() {
	for _, c := range rs.closes {
		c()
	}
}

// renderer is what bodies go to; nil if none is configured.
func (rs *renderers) renderer() render.Renderer {
	if rs == nil {
		return nil
	}
	return rs.models
}

// ready says whether bodies can be rendered: some renderer is configured, and none is at fault.
func (rs *renderers) ready() bool { return rs != nil && rs.models.Ready() == nil }

// stats tells of each renderer.
func (rs *renderers) stats() []*kvscoutv1.RendererStats {
	if rs == nil {
		return nil
	}
	reports := rs.models.Reports()
	var out []*kvscoutv1.RendererStats
	for _, model := range slices.Sorted(maps.Keys(reports)) {
		r := reports[model]
		s := &kvscoutv1.RendererStats{
			Model: model, Renderer: r.Renderer, Ready: r.Ready, Fingerprint: r.Fingerprint, Calls: r.Calls,
			CacheHits: r.Cache.Hits, CacheBytes: uint64(max(0, r.Cache.Bytes)), MemoryBytes: uint64(max(0, r.Memory)), Loads: r.Loads,
		}
		if r.Fault != nil {
			s.Error = r.Fault.Error()
		}
		for reason, n := range r.Errors {
			if n == 0 {
				continue
			}
			if s.Errors == nil {
				s.Errors = make(map[string]uint64)
			}
			s.Errors[render.Reason(reason).String()] = n
		}
		out = append(out, s)
	}
	return out
}

// callTimeout is long enough for the slowest render.
func (o *renderOptions) callTimeout() time.Duration { return 2 * o.timeout }
