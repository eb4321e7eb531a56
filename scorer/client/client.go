package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ErrOptions is an address or an option that cannot be used. ErrPlaintextToken is one: a bearer token that would go to
// another machine without TLS.
var (
	ErrOptions        = errors.New("bad client options")
	ErrPlaintextToken = fmt.Errorf("%w: a token would go without TLS", ErrOptions)
)

// Protocol is what is spoken on the wire.
type Protocol string

// The protocols. Connect is the fastest from Go, since it needs no HTTP/2: see docs/performance.md.
const (
	Connect Protocol = "connect"
	GRPC    Protocol = "grpc"
	GRPCWeb Protocol = "grpcweb"
	// ConnectJSON is Connect with messages that people can read, at the price of time on both sides.
	ConnectJSON Protocol = "connect-json"
)

// Defaults of Options.
const (
	DefaultTimeout      = 2 * time.Second
	DefaultDialTimeout  = time.Second
	DefaultRetries      = 3
	DefaultConcurrency  = 256
	DefaultReadMaxBytes = 64 << 20
)

// Options configures a Client. Zero means the default of that name.
type Options struct {
	// Protocol is Connect unless stated. ScoreStream uses HTTP/2 with every one.
	Protocol Protocol
	// Timeout bounds a unary call whose context has no deadline, every try and pause included.
	Timeout time.Duration
	// DialTimeout bounds one try to make a connection.
	DialTimeout time.Duration
	// Retries is how often a call is tried again at most; negative is never.
	Retries int
	// Concurrency is how many calls are expected at once: so many connections are kept.
	Concurrency int
	// ReadMaxBytes bounds one message of an answer.
	ReadMaxBytes int
	// TLS is for https servers; nil takes the system's roots.
	TLS *tls.Config
	// Token is asked before each try for the bearer token, of which it returns the bare text; TokenFile makes one. Nil
	// sends none.
	Token func(context.Context) (string, error)
	// PlaintextToken lets the token go without TLS to other machines, for networks that encrypt by themselves. Without it
	// New errs with ErrPlaintextToken for http addresses other than loopback's. Unix sockets need neither.
	PlaintextToken bool
}

func (o Options) withDefaults() Options {
	if o.Protocol == "" {
		o.Protocol = Connect
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.DialTimeout <= 0 {
		o.DialTimeout = DefaultDialTimeout
	}
	if o.Retries == 0 {
		o.Retries = DefaultRetries
	}
	if o.Concurrency <= 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.ReadMaxBytes <= 0 {
		o.ReadMaxBytes = DefaultReadMaxBytes
	}
	return o
}

// Client calls a server or one of its replicas. Make it with New, and Close it.
type Client struct {
	opts    Options
	servers []*server
	// current is the index of the server that calls go to.
	current atomic.Uint32
	budget  *budget
}

// New returns a client of the servers at these addresses: "http://host:port", "https://host:port" or "unix:///path".
// It connects with the first call. It errs with ErrOptions.
func New(addresses []string, opts Options) (*Client, error) {
	opts = opts.withDefaults()
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%w: no address", ErrOptions)
	}
	c := &Client{opts: opts, budget: newBudget()}
	for i, text := range addresses {
		a, err := parseAddress(text)
		if err != nil {
			return nil, err
		}
		if opts.Token != nil && !opts.PlaintextToken && !a.private() {
			return nil, fmt.Errorf("%w to %s", ErrPlaintextToken, a.base)
		}
		s, err := newServer(a, opts, func() { c.leave(uint32(i)) })
		if err != nil {
			return nil, err
		}
		c.servers = append(c.servers, s)
	}
	return c, nil
}

// Close frees connections that no call uses.
func (c *Client) Close() {
	for _, s := range c.servers {
		s.close()
	}
}

// at is the server that calls go to, and its index.
func (c *Client) at() (*server, uint32) {
	i := c.current.Load()
	return c.servers[i], i
}

// leave makes calls go to the next server, if they go to server i now.
func (c *Client) leave(i uint32) {
	c.current.CompareAndSwap(i, (i+1)%uint32(len(c.servers)))
}

// bounded is ctx with a deadline.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.opts.Timeout)
}
