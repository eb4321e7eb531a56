package render

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

// ErrOptions is a configuration that cannot be used. ErrPlaintextToken is one: a bearer token that would go to another
// machine without TLS.
var (
	ErrOptions        = errors.New("bad renderer options")
	ErrPlaintextToken = fmt.Errorf("%w: the bearer token would go without TLS", ErrOptions)
)

// Defaults of Options.
const (
	DefaultTimeout      = 5 * time.Second
	DefaultMediaTimeout = 30 * time.Second
	DefaultMaxBody      = 32 << 20
	// DefaultMaxResponse fits a million ids many times over: an answer with media tensors is skipped, not stored.
	DefaultMaxResponse = 64 << 20
	DefaultMaxTokens   = 2 << 20
	DefaultMaxPrompts  = 128
	DefaultConcurrency = 64
	DefaultQueue       = 1024
	DefaultBreakAfter  = 10
	DefaultBreakFor    = 5 * time.Second
)

// Options configure a Client. Zero means the default, except for URL and Protocol, which must be given.
type Options struct {
	// URL is the renderer's base, as "http://host:8000" or "https://host/base". The render path is appended to it.
	// It has no user, no query and no fragment.
	URL string
	// Protocol is one of Protocols.
	Protocol string
	// Timeout bounds a whole call, waiting included. A shorter deadline of the context counts.
	Timeout time.Duration
	// MediaTimeout takes Timeout's place for bodies that seem to carry images, audio or video, which the renderer
	// downloads and decodes.
	MediaTimeout time.Duration
	// MaxBody bounds a request body, in bytes.
	MaxBody int64
	// MaxResponse bounds an answer's body, in bytes.
	MaxResponse int64
	// MaxTokens bounds the tokens of all prompts of an answer together.
	MaxTokens int
	// MaxPrompts bounds the prompts of an answer.
	MaxPrompts int
	// Concurrency bounds the calls on the wire.
	Concurrency int
	// Queue bounds the calls that wait for one of those.
	Queue int
	// BreakAfter is how many faults of the renderer in a row open the circuit: for BreakFor no call is sent, then one,
	// and if that goes well the circuit is closed again.
	BreakAfter int
	BreakFor   time.Duration
	// Transport carries the requests; nil for one of the client's own: HTTP/1.1, kept connections, no proxy.
	// It need not decompress: no compression is asked for.
	Transport http.RoundTripper
	// Propagate, when set, writes into the headers of a render what its context belongs to, such as a trace.
	Propagate func(context.Context, http.Header)
	// BearerToken is sent as "Authorization: Bearer"; empty sends none. It appears in no error.
	BearerToken string
	// PlaintextToken lets the token go without TLS to other machines, for networks that encrypt by themselves.
	PlaintextToken bool
}

// orDefault is v, or the default if v is zero.
func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func (o Options) withDefaults() Options {
	o.Timeout = orDefault(o.Timeout, DefaultTimeout)
	o.MediaTimeout = orDefault(o.MediaTimeout, DefaultMediaTimeout)
	o.MaxBody = orDefault(o.MaxBody, DefaultMaxBody)
	o.MaxResponse = orDefault(o.MaxResponse, DefaultMaxResponse)
	o.MaxTokens = orDefault(o.MaxTokens, DefaultMaxTokens)
	o.MaxPrompts = orDefault(o.MaxPrompts, DefaultMaxPrompts)
	o.Concurrency = orDefault(o.Concurrency, DefaultConcurrency)
	o.Queue = orDefault(o.Queue, DefaultQueue)
	o.BreakAfter = orDefault(o.BreakAfter, DefaultBreakAfter)
	o.BreakFor = orDefault(o.BreakFor, DefaultBreakFor)
	return o
}

// Validate returns every fault of the options, joined; each matches ErrOptions. NewClient calls it.
func (o Options) Validate() error {
	base, err := parseBase(o.URL)
	errs := []error{err}
	if err == nil && o.BearerToken != "" && !o.PlaintextToken && base.Scheme != "https" && !loopback(base.Hostname()) {
		errs = append(errs, fmt.Errorf("%w to %s", ErrPlaintextToken, base.Host))
	}
	if _, known := protocols[o.Protocol]; !known {
		errs = append(errs, fmt.Errorf("%w: protocol %q is not known, known are %s", ErrOptions, o.Protocol, knownProtocols()))
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"timeout", int64(o.Timeout)}, {"media timeout", int64(o.MediaTimeout)}, {"max body", o.MaxBody},
		{"max response", o.MaxResponse}, {"max tokens", int64(o.MaxTokens)}, {"max prompts", int64(o.MaxPrompts)},
		{"concurrency", int64(o.Concurrency)}, {"queue", int64(o.Queue)},
		{"break after", int64(o.BreakAfter)}, {"break for", int64(o.BreakFor)},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("%w: %s %d is negative", ErrOptions, f.name, f.value))
		}
	}
	if !legalValue(o.BearerToken) {
		errs = append(errs, fmt.Errorf("%w: bearer token has characters that no header may have", ErrOptions))
	}
	return errors.Join(errs...)
}

// loopback is whether a host is this machine.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// parseBase reads Options.URL. Its errors show a URL only once it is known to hold no password.
func parseBase(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: url does not parse", ErrOptions)
	case u.User != nil:
		return nil, fmt.Errorf("%w: url of host %q has a user, use the bearer token", ErrOptions, u.Host)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%w: url scheme %q is not http or https", ErrOptions, u.Scheme)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%w: url %q has no host", ErrOptions, text)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fmt.Errorf("%w: url of host %q has a query or a fragment", ErrOptions, u.Host)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("%w: url %q has no legal port", ErrOptions, text)
		}
	}
	return u, nil
}
