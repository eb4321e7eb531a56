package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/scorer/tracing"
)

// renderOptions are the settings of a server that say how bodies become tokens, and what of them counts.
type renderOptions struct {
	url, protocol, tokenFile string
	insecureToken            bool
	timeout, health, reload  time.Duration
	concurrency              int
	models                   []string
	specs                    []renderSpec // of models
	cacheBytes               int64
	cacheTTL                 time.Duration

	tenantHeader      string
	stripFields       []string
	trustCallerTokens bool
	mismatch          string
}

func (o *renderOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.url, "renderer", "", "`URL` of the renderer for every model without a --render-model of its own (default: none, their bodies are refused)")
	f.StringVar(&o.protocol, "renderer-protocol", render.ProtocolVLLM, "what the renderer speaks: "+strings.Join(render.Protocols(), ", "))
	f.DurationVar(&o.timeout, "renderer-timeout", render.DefaultTimeout, "longest time for one render; bodies with media get 30s if that is more")
	f.StringVar(&o.tokenFile, "renderer-token-file", "", "`FILE` that holds the bearer token of every remote renderer (default: none)")
	f.BoolVar(&o.insecureToken, "renderer-insecure-token", false, "send that token in clear text to renderers on other machines, over http (default false: refuse)")
	f.IntVar(&o.concurrency, "renderer-concurrency", render.DefaultConcurrency, "calls to one remote renderer at once; 1024 more may wait")
	f.DurationVar(&o.health, "renderer-health-interval", 5*time.Second, "how often remote renderers are asked for their health")
	f.StringArrayVar(&o.models, "render-model", nil, "render `SPEC` of one model, as described above; may be repeated (default: none)")
	f.DurationVar(&o.reload, "render-reload-interval", 10*time.Second, "how often the directories of models are looked at; changed files are loaded, and if they cannot be, the old ones stay in use")
	f.Int64Var(&o.cacheBytes, "render-cache-bytes", render.DefaultCacheBytes, "room for the tokens of bodies that come again, per renderer; 0 is none")
	f.DurationVar(&o.cacheTTL, "render-cache-ttl", render.DefaultCacheTTL, "how long such tokens are used")
	f.StringVar(&o.tenantHeader, "tenant-header", "x-tenant-id", "`HEADER` of a request that names its tenant, which is its cache salt; - is none")
	f.StringArrayVar(&o.stripFields, "strip-field", []string{"nvext"}, "top-level `MEMBER` of bodies that only the gateway knows, kept from renderers; may be repeated")
	f.BoolVar(&o.trustCallerTokens, "trust-caller-tokens", false, "take token ids that a body carries for its prompt (default false: refuse such bodies)")
	f.StringVar(&o.mismatch, "fingerprint-mismatch", "refuse", "what becomes of a request if a worker renders otherwise than the renderer: refuse, or flag its numbers")
}

// check looks at each setting by itself.
func (o *renderOptions) check() error {
	var faults []error
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"renderer-timeout", int64(o.timeout)}, {"renderer-concurrency", int64(o.concurrency)},
		{"renderer-health-interval", int64(o.health)}, {"render-reload-interval", int64(o.reload)},
		{"render-cache-ttl", int64(o.cacheTTL)},
	} {
		if f.value <= 0 {
			bad("%s is not positive", f.name)
		}
	}
	if o.cacheBytes < 0 {
		bad("render-cache-bytes %d is negative", o.cacheBytes)
	}
	if o.mismatch != "refuse" && o.mismatch != "flag" {
		bad("fingerprint-mismatch %q is not refuse or flag", o.mismatch)
	}
	if o.tenantHeader == "-" {
		o.tenantHeader = ""
	} else if o.tenantHeader == "" || strings.ContainsAny(o.tenantHeader, " :\t\r\n") {
		bad("tenant-header %q is no name of a header", o.tenantHeader)
	}
	for _, name := range o.stripFields {
		if name == "" || name == "model" || name == "messages" || name == "prompt" {
			bad("strip-field %q must stay", name)
		}
	}
	var err error
	o.specs, err = parseRenderSpecs(o.models)
	return errors.Join(append(faults, err)...)
}

// clientOptions are those of a remote renderer.
func (o *renderOptions) clientOptions(url, protocol string, maxTokens int) (render.Options, error) {
	token := ""
	if o.tokenFile != "" {
		data, err := readBounded(o.tokenFile, nil)
		if err != nil {
			return render.Options{}, err
		}
		token = strings.TrimSpace(string(data))
	}
	return render.Options{
		URL: url, Protocol: protocol, BearerToken: token, PlaintextToken: o.insecureToken,
		Timeout: o.timeout, MediaTimeout: max(o.timeout, render.DefaultMediaTimeout),
		MaxTokens: max(maxTokens, render.DefaultMaxTokens), Concurrency: o.concurrency,
		Propagate: tracing.Inject,
	}, nil
}
