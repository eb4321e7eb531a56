package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
)

// Target is the server that is called.
type Target struct {
	// Network and Address are what is dialled: "tcp" and host:port, or "unix" and a path.
	Network, Address string
	// TLS, if set, is spoken on each connection.
	TLS *tls.Config
	// Header goes with each request, such as Authorization. Values are never shown.
	Header http.Header
}

// speaking is the target with TLS that says which protocol is spoken on a connection.
func (t Target) speaking(p Protocol) Target {
	if t.TLS != nil {
		t.TLS = t.TLS.Clone()
		t.TLS.NextProtos = []string{"http/1.1"}
		if p == ProtocolGRPC {
			t.TLS.NextProtos = []string{"h2"}
		}
	}
	return t
}

// Dial opens a connection.
func (t Target) Dial(ctx context.Context) (net.Conn, error) {
	if t.TLS != nil {
		return (&tls.Dialer{Config: t.TLS}).DialContext(ctx, t.Network, t.Address)
	}
	return new(net.Dialer).DialContext(ctx, t.Network, t.Address)
}

// Client is how calls are made.
type Client struct {
	Protocol Protocol
	// Stock takes connect-go or grpc-go instead of lean callers.
	Stock bool
	Form  Form
	// Callers have a call each under way at most. Connections are shared by the callers of gRPC and of connect-go; each
	// lean caller has its own.
	Callers, Connections int
}

// MaxCallers bounds Client.Callers and Client.Connections.
const MaxCallers = 4096

// Validate errs with ErrWorkload if there is no such client.
func (c Client) Validate() error {
	switch {
	case c.Protocol != ProtocolConnect && c.Protocol != ProtocolJSON && c.Protocol != ProtocolGRPC:
		return fmt.Errorf("%w: protocol %q", ErrWorkload, c.Protocol)
	case c.Callers < 1 || c.Callers > MaxCallers || c.Connections < 0 || c.Connections > MaxCallers:
		return fmt.Errorf("%w: %d callers on %d connections", ErrWorkload, c.Callers, c.Connections)
	case c.Form.Batch < 0 || c.Form.Batch > MaxBatch:
		return fmt.Errorf("%w: a batch of %d", ErrWorkload, c.Form.Batch)
	case c.Protocol == ProtocolGRPC && !c.Stock:
		return fmt.Errorf("%w: there is no lean caller for gRPC", ErrWorkload)
	}
	return nil
}

// Callers makes the callers of a client. end frees what they share, after each was closed.
func (w *Workload) Callers(t Target, c Client) (list []Caller, end func() error, err error) {
	if err := c.Validate(); err != nil {
		return nil, nil, err
	}
	t = t.speaking(c.Protocol)
	var calls []proto.Message
	for n := range w.Prompts {
		calls = append(calls, w.call(n, c.Form))
	}
	if c.Stock {
		return w.stock(t, c, calls)
	}
	return w.lean(t, c, calls)
}

func (w *Workload) lean(t Target, c Client, calls []proto.Message) (list []Caller, end func() error, err error) {
	post := &Post{
		Dial: t.Dial, Path: kvscoutv1connect.ScoreServiceScoreProcedure, ContentType: "application/proto",
		Header: "Connect-Protocol-Version: 1\r\n" + lines(t.Header),
		Check: func(n int, body []byte, whole bool) error {
			return w.checkBytes(n, body, whole, c.Form, c.Protocol)
		},
	}
	if c.Form.Batch > 0 {
		post.Path = kvscoutv1connect.ScoreServiceScoreBatchProcedure
	}
	if c.Protocol == ProtocolJSON {
		post.ContentType = "application/json"
	}
	for _, m := range calls {
		body, err := encode(m, c.Protocol)
		if err != nil {
			return nil, nil, err
		}
		post.Bodies = append(post.Bodies, body)
	}
	messages := post.Messages()
	for i := range c.Callers {
		list = append(list, NewLean(post, messages, i))
	}
	return list, func() error { return nil }, nil
}

// lines are headers as HTTP/1.1 has them.
func lines(h http.Header) string {
	var out strings.Builder
	_ = h.Write(&out) // a Builder takes everything
	return out.String()
}

func (w *Workload) stock(t Target, c Client, calls []proto.Message) (list []Caller, end func() error, err error) {
	if c.Protocol != ProtocolGRPC {
		send, end := connectSender(t, c.Protocol, max(c.Connections, 1))
		for i := range c.Callers {
			list = append(list, &stockCaller{w: w, calls: calls, first: i, send: send})
		}
		return list, end, nil
	}
	var conns []*grpc.ClientConn
	end = func() error {
		var faults []error
		for _, conn := range conns {
			faults = append(faults, conn.Close())
		}
		return errors.Join(faults...)
	}
	var senders []sender
	for range max(c.Connections, 1) {
		conn, err := grpcConnection(t)
		if err != nil {
			return nil, nil, errors.Join(err, end())
		}
		conns = append(conns, conn)
		senders = append(senders, grpcSender(conn, t.Header))
	}
	for i := range c.Callers {
		list = append(list, &stockCaller{w: w, calls: calls, first: i, send: senders[i%len(senders)]})
	}
	return list, end, nil
}
