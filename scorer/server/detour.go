package server

import (
	"bytes"
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/kvscout/kvscout/scorer/plain"
)

// detour answers a call by the HTTP handlers.
func (p *plainServer) detour(in *plain.Call) {
	w := written{header: make(http.Header), body: in.Room()}
	p.owner.handler.ServeHTTP(&w, requestOf(in))
	w.send(in)
}

// requestOf is a call as an HTTP request. It says HTTP/2, so that nobody reads the body of a call that is refused: that is done where
// the connection is.
func requestOf(in *plain.Call) *http.Request {
	r := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: in.Path}, RequestURI: in.Path, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header{"Content-Type": {in.Kind}}, Body: &body{call: in}, ContentLength: int64(in.Length), RemoteAddr: in.Remote(), TLS: tlsOf(in),
	}
	for name, value := range map[string]string{
		"Authorization": in.Authorization, "X-Request-Id": in.RequestID, "Traceparent": in.TraceParent, "Tracestate": in.TraceState,
	} {
		if value != "" {
			r.Header[name] = []string{value}
		}
	}
	if in.Gzip {
		r.Header["Accept-Encoding"] = []string{"gzip"}
	}
	return r.WithContext(in)
}

// body reads a call's body once somebody wants it.
type body struct {
	call *plain.Call
	rest *bytes.Reader // nil before
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.rest == nil {
		whole, err := b.call.Body()
		if err != nil {
			return 0, err
		}
		b.rest = bytes.NewReader(whole)
	}
	return b.rest.Read(p)
}

// Close implements io.Closer. The call's end closes what there is to close.
func (b *body) Close() error { return nil }

// written is an answer of an http.Handler.
type written struct {
	header http.Header
	status int // 0 before it is said
	body   []byte
}

// Header implements http.ResponseWriter.
func (w *written) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *written) WriteHeader(status int) { w.status = cmp.Or(w.status, status) }

// Write implements http.ResponseWriter.
func (w *written) Write(p []byte) (int, error) {
	w.body = append(w.body, p...)
	return len(p), nil
}

// Flush implements http.Flusher. An answer is sent whole.
func (w *written) Flush() {}

// send sends it. It fails where there is nobody left to be told.
func (w *written) send(in *plain.Call) {
	var fields []plain.Field
	for name, values := range w.header {
		for _, v := range values {
			fields = append(fields, plain.Field{Name: name, Value: headerValue.Replace(v)})
		}
	}
	_ = in.Send(cmp.Or(w.status, http.StatusOK), w.body, fields...)
}

// headerValue makes of a text one that a header can have, as net/http does.
var headerValue = strings.NewReplacer("\n", " ", "\r", " ")
