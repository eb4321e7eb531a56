package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/scorer/access"
	"github.com/kvscout/kvscout/scorer/calls"
	"github.com/kvscout/kvscout/scorer/codec"
	"github.com/kvscout/kvscout/scorer/plain"
)

// Content types of unary messages by Connect.
const (
	kindProto = "application/proto"
	kindJSON  = "application/json"
)

// plainServer answers unary calls as clients of Connect make them by HTTP/1.1. The methods that routers wait for have handlers of their
// own, with the same guard, limits, request ids, records and errors as those of HTTP; any other call becomes an HTTP request for the
// handler that serves everything.
type plainServer struct {
	server *plain.Server
	owner  *Server
	unary  map[string]map[string]unary // by content type and method: those that need no detour
	errors *connect.ErrorWriter
	gzip   sync.Pool // of *gzip.Writer
}

// newPlain returns one that leaves other connections to rest.
func (s *Server) newPlain(rest func(net.Conn) bool) *plainServer {
	m := scoreMethods{s.opts.Score}
	p := &plainServer{
		owner: s, errors: connect.NewErrorWriter(),
		unary: map[string]map[string]unary{kindProto: m.unary(codec.Proto{}), kindJSON: m.unary(codec.JSON{As: "json"})},
	}
	p.gzip.New = func() any { return gzip.NewWriter(io.Discard) }
	p.server = plain.New(plain.Options{
		Paths: unaryMethods(), Kinds: []string{kindProto, kindJSON},
		MaxBody: s.opts.ReadMaxBytes, HeadTime: headTime, CallTime: s.opts.CallTimeout, IdleTime: idleTime,
		Buffers: buffers, Answer: p.answer,
		Else: func(c net.Conn, unread []byte) bool {
			c.(*conn).head = unread
			return rest(c)
		},
	})
	return p
}

// take answers a connection from its first request on.
func (p *plainServer) take(c *conn) bool {
	unread := c.head
	c.head = nil
	return p.server.Take(c, unread)
}

// answer answers a call.
func (p *plainServer) answer(in *plain.Call) {
	defer func() {
		if thrown := recover(); thrown != nil { // handlers catch their own: this is what lies around them
			p.owner.log.Error("panic in a call", "method", in.Path, "panic_type", fmt.Sprintf("%T", thrown))
		}
	}()
	if serve, ok := p.unary[in.Kind][in.Path]; ok {
		p.direct(in, serve)
		return
	}
	p.detour(in)
}

// direct answers a call of a method that routers wait for.
func (p *plainServer) direct(in *plain.Call, serve unary) {
	c := p.owner.recorder.Begin(in, in.Path, listOf(in.RequestID), carried(in.TraceParent, in.TraceState))
	defer c.End()
	admitted, refused := p.owner.admit(c, access.Call{
		Procedure: in.Path, Authorization: listOf(in.Authorization), TLS: tlsOf(in), Remote: in.Remote(),
	})
	if refused != nil {
		p.refuse(in, c, refused.Connect())
		return
	}
	defer admitted.End()
	body, err := in.Body()
	if err != nil {
		c.Unhandled(codeOfBody(err))
		p.fail(in, c, connect.NewError(codeOfBody(err), err))
		return
	}
	out, err := p.owner.guarded(c, in.Path, serve, [][]byte{body}, in.Room())
	c.Handled(err)
	if err != nil {
		p.fail(in, c, err)
		return
	}
	p.send(in, c, out)
}

// send sends an answer. It fails where there is nobody left to be answered.
func (p *plainServer) send(in *plain.Call, c *calls.Call, out []byte) {
	fields := [4]plain.Field{
		{Name: "Content-Type", Value: in.Kind}, {Name: "Accept-Encoding", Value: "gzip"}, {Name: "X-Request-Id", Value: c.RequestIDs()[0]},
		{Name: "Content-Encoding", Value: "gzip"},
	}
	if in.Gzip && len(out)-plain.Reserve >= compressMinBytes {
		_ = in.Send(http.StatusOK, p.deflate(out), fields[:]...)
		return
	}
	_ = in.Send(http.StatusOK, out, fields[:3]...)
}

// deflate compresses an answer.
func (p *plainServer) deflate(out []byte) []byte {
	packed := bytes.NewBuffer(make([]byte, plain.Reserve, len(out)/2))
	w := p.gzip.Get().(*gzip.Writer)
	defer p.gzip.Put(w)
	w.Reset(packed)
	_, _ = w.Write(out[plain.Reserve:]) // memory takes everything
	_ = w.Close()
	return packed.Bytes()
}

// refuse answers for the guard.
func (p *plainServer) refuse(in *plain.Call, c *calls.Call, err error) {
	header := http.Header{"X-Request-Id": c.RequestIDs()}
	if connect.CodeOf(err) == connect.CodeUnauthenticated {
		header["Www-Authenticate"] = []string{"Bearer"}
	}
	p.sendError(in, header, err)
}

// fail answers for the handler.
func (p *plainServer) fail(in *plain.Call, c *calls.Call, err error) {
	switch {
	case connect.CodeOf(err) != connect.CodeUnknown:
	case errors.Is(err, context.DeadlineExceeded):
		err = connect.NewError(connect.CodeDeadlineExceeded, err)
	case errors.Is(err, context.Canceled):
		err = connect.NewError(connect.CodeCanceled, err)
	}
	p.sendError(in, http.Header{"X-Request-Id": c.RequestIDs(), "Accept-Encoding": {"gzip"}}, err)
}

// sendError sends an error, as connect writes it. It fails where there is nobody left to be told.
func (p *plainServer) sendError(in *plain.Call, header http.Header, err error) {
	w := written{header: header, body: in.Room()}
	_ = p.errors.Write(&w, &http.Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {in.Kind}}}, err) // memory takes everything
	w.send(in)
}

// codeOfBody is the code of a body that did not come whole.
func codeOfBody(err error) connect.Code {
	if errors.Is(err, context.DeadlineExceeded) {
		return connect.CodeDeadlineExceeded
	}
	return connect.CodeCanceled
}

// tlsOf is the TLS of a call's connection, nil in clear text. take takes no other connections.
func tlsOf(in *plain.Call) *tls.ConnectionState { return in.Conn().(*conn).tls }

// listOf is a header's values.
func listOf(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}
