package server_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/server"
)

var smallScore = &kvscoutv1.ScoreRequest{Model: "m", Tokens: &kvscoutv1.Tokens{Packed: packed(64)}}

// A gRPC client meets grpc-go's own transport, which says nothing of compression in its headers.
func TestTransport_OfGRPCClients(t *testing.T) {
	conn := dial(t, start(t))
	var header metadata.MD
	out := new(kvscoutv1.ScoreResponse)
	if err := conn.Invoke(t.Context(), kvscoutv1connect.ScoreServiceScoreProcedure, smallScore, out, grpc.Header(&header)); err != nil {
		t.Fatal(err)
	}
	if len(header["grpc-accept-encoding"]) > 0 || out.GetWorkers()[0].GetHeldTokens() != 64 {
		t.Errorf("header %v, answer %v", header, out)
	}
	err := conn.Invoke(t.Context(), "/kvscout.v1.NoService/Score", smallScore, out)
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("unknown service: %v", err)
	}
}

// One connection of a client that speaks several protocols, or of a proxy, takes them all.
func TestTransport_SeveralProtocolsOnOneConnection(t *testing.T) {
	for name, header := range map[string]map[string]string{
		"connect-go first speaks gRPC": {},
		"a proxy of grpc-go clients":   {"User-Agent": "grpc-go/1.85.0", "Via": "2 proxy"},
		"a proxy that names nobody":    {"User-Agent": "grpc-java-netty/1.70.0", "X-Request-Id": "7"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			c := client(t, true)
			with := connect.WithInterceptors(connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
				return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
					for k, v := range header {
						req.Header().Set(k, v)
					}
					return next(ctx, req)
				}
			}))
			for _, as := range []connect.ClientOption{connect.WithGRPC(), connect.WithProtoJSON(), connect.WithGRPCWeb()} {
				out, err := kvscoutv1connect.NewScoreServiceClient(c, r.url(""), as, with).Score(t.Context(), connect.NewRequest(smallScore))
				if err != nil || out.Msg.GetWorkers()[0].GetHeldTokens() != 64 {
					t.Errorf("%v, %v", out, err)
				}
			}
		})
	}
}

// Requests that are compressed are read up to the limit, decompressed.
func TestTransport_Limits(t *testing.T) {
	conn := dial(t, start(t, func(o *server.Options) { o.ReadMaxBytes = 1 << 20 }))
	out := new(kvscoutv1.ScoreResponse)
	score := func(tokens int, opts ...grpc.CallOption) error {
		req := &kvscoutv1.ScoreRequest{Model: "m", Tokens: &kvscoutv1.Tokens{Packed: make([]byte, 4*tokens)}}
		return conn.Invoke(t.Context(), kvscoutv1connect.ScoreServiceScoreProcedure, req, out, opts...)
	}
	if err := score(1000, grpc.UseCompressor(gzip.Name)); err != nil {
		t.Error(err)
	}
	for _, opts := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}} {
		if err := score(1<<18, opts...); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("a message over the limit: %v", err)
		}
	}
}

// A unary call whose message does not come is cut, and so is none that goes on.
func TestTransport_CallTimeout(t *testing.T) {
	conn := dial(t, start(t, func(o *server.Options) { o.CallTimeout = 50 * time.Millisecond }))
	both := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	stream, err := conn.NewStream(t.Context(), both, kvscoutv1connect.ScoreServiceScoreStreamProcedure)
	if err != nil {
		t.Fatal(err)
	}
	silent, err := conn.NewStream(t.Context(), both, kvscoutv1connect.ScoreServiceScoreProcedure)
	if err != nil {
		t.Fatal(err)
	}
	if err := silent.RecvMsg(new(kvscoutv1.ScoreResponse)); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a call without a message: %v", err)
	}
	out := new(kvscoutv1.ScoreStreamResponse)
	if err := stream.SendMsg(&kvscoutv1.ScoreStreamRequest{Request: smallScore}); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(out); err != nil || out.GetResult().GetResponse() == nil {
		t.Errorf("a stream that is older than the timeout of calls: %v, %v", out, err)
	}
}

// A stream that is open when the server shuts down ends with NOT_READY, and the shutdown waits for nothing else.
func TestTransport_StreamEndsWithServer(t *testing.T) {
	r := start(t)
	conn := dial(t, r)
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, kvscoutv1connect.ScoreServiceScoreStreamProcedure)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendMsg(&kvscoutv1.ScoreStreamRequest{Request: smallScore}); err != nil {
		t.Fatal(err)
	}
	out := new(kvscoutv1.ScoreStreamResponse)
	if err := stream.RecvMsg(out); err != nil {
		t.Fatal(err)
	}
	r.stop()
	if err := stream.RecvMsg(out); status.Code(err) != codes.Unavailable || len(status.Convert(err).Details()) != 1 {
		t.Errorf("the stream ended with %v, %v", err, status.Convert(err).Details())
	}
	if err := <-r.done; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// Whatever a connection begins with, it is answered as net/http answers it, or closed; and none holds the server up.
func TestTransport_OddConnections(t *testing.T) {
	r := start(t)
	open := func() net.Conn {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	send := func(c net.Conn, text string) {
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
	slow := open()
	for _, part := range strings.SplitAfter("PUT /kvscout.v1.ScoreService/Score HTTP/1.1\r\nHost: x\r\n\r\n", "P") {
		send(slow, part)
	}
	first := make([]byte, len("HTTP/1.1 405"))
	if _, err := io.ReadFull(slow, first); err != nil || string(first) != "HTTP/1.1 405" {
		t.Errorf("a request in pieces: %q, %v", first, err)
	}
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	for name, text := range map[string]string{
		"no frame":            preface + strings.Repeat("x", 100),
		"a frame too long":    preface + "\xff\xff\xff\x00\x00\x00\x00\x00\x01",
		"bad headers":         preface + "\x00\x00\x04\x01\x05\x00\x00\x00\x01\xff\xff\xff\xff",
		"headers without end": preface + "\x00\x00\x00\x01\x00\x00\x00\x00\x01" + strings.Repeat("\x00\x3f\xff\x09\x00\x00\x00\x00\x01"+strings.Repeat("\x00", 0x3fff), 9),
	} {
		c := open()
		_, _ = io.WriteString(c, text) // it may be closed before all is sent
		if _, err := io.Copy(io.Discard, c); err == nil {
			continue // closed
		} else if !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
	}
	send(open(), preface[:10]) // stays so
	_ = open()                 // says nothing
	r.stop()
	if err := <-r.done; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// Clients of HTTP/2 that ask at once, before they have seen the server's settings, lose nothing.
func TestTransport_HTTP2(t *testing.T) {
	r := startLarge(t)
	c := client(t, true)
	body := packed(65536)
	for range 3 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url(kvscoutv1connect.ScoreServiceScoreProcedure),
			bytes.NewReader(append([]byte{0x0a, 1, 'm', 0x12, 0x84, 0x80, 0x10, 0x0a, 0x80, 0x80, 0x10}, body...)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/proto")
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(data, []byte("w0")) {
			t.Errorf("status %d, %v: %.100q", resp.StatusCode, err, data)
		}
	}
}
