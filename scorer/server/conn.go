package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"

	"google.golang.org/grpc/credentials"
)

// conn is a connection of which head was read already, after its TLS was opened.
type conn struct {
	net.Conn
	head []byte               // read by one goroutine at a time, as connections are
	tls  *tls.ConnectionState // nil in clear text
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		if c.head = c.head[n:]; len(c.head) == 0 {
			c.head = nil
		}
		return n, nil
	}
	return c.Conn.Read(p)
}

// open opens a connection with TLS, or returns the one in clear text as it is if conf is nil.
func open(c net.Conn, conf *tls.Config) (*conn, error) {
	if conf == nil {
		return &conn{Conn: c}, nil
	}
	t := tls.Server(c, conf)
	if err := t.Handshake(); err != nil {
		var clear tls.RecordHeaderError
		if errors.As(err, &clear) && clear.Conn != nil && isHTTP(clear.RecordHeader) {
			_, _ = io.WriteString(clear.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n") // as net/http says it
		}
		return nil, err
	}
	state := t.ConnectionState()
	return &conn{Conn: t, tls: &state}, nil
}

// isHTTP says whether a connection begins as one that speaks HTTP/1.1 in clear text.
func isHTTP(head [5]byte) bool {
	switch string(head[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	}
	return false
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// withConn is http.Server.ConnContext.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// told tells requests of the TLS of their connection: to net/http each looks as if it were in clear text.
func told(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*conn); ok {
			r.TLS = c.tls
		}
		next.ServeHTTP(w, r)
	})
}

// opened are the credentials of grpc-go for connections whose TLS is open.
type opened struct{}

// ServerHandshake implements credentials.TransportCredentials.
func (opened) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, ok := raw.(*conn)
	if !ok || c.tls == nil {
		return raw, nil, nil
	}
	info := credentials.TLSInfo{State: *c.tls}
	info.SecurityLevel = credentials.PrivacyAndIntegrity
	return raw, info, nil
}

var errServerOnly = errors.New("credentials of a server")

// ClientHandshake implements credentials.TransportCredentials.
func (opened) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errServerOnly
}

// Info implements credentials.TransportCredentials.
func (opened) Info() credentials.ProtocolInfo { return credentials.ProtocolInfo{} }

// Clone implements credentials.TransportCredentials.
func (o opened) Clone() credentials.TransportCredentials { return o }

// OverrideServerName implements credentials.TransportCredentials.
func (opened) OverrideServerName(string) error { return errServerOnly }
