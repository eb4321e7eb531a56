package server_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/calls"
	"github.com/kvscout/kvscout/scorer/server"
)

// verbose answers with more than any buffer between it and its caller holds.
type verbose struct {
	kvscoutv1connect.UnimplementedScoreServiceHandler
}

func (verbose) Score(context.Context, *connect.Request[kvscoutv1.ScoreRequest]) (*connect.Response[kvscoutv1.ScoreResponse], error) {
	return connect.NewResponse(&kvscoutv1.ScoreResponse{Tokens: &kvscoutv1.Tokens{Packed: make([]byte, 16<<20)}}), nil
}

// Invariant 2: a caller who does not read holds no call for ever, whatever it speaks. The call can only end by being cut.
func TestServe_SlowReaderIsCut(t *testing.T) {
	ended := make(chan string, 3)
	r := start(t, func(o *server.Options) {
		o.Score, o.CallTimeout = verbose{}, 300*time.Millisecond
		o.Observe = func(d calls.Done) { ended <- d.Method }
	})
	cut := func(name string) {
		t.Helper()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Errorf("%s: the call goes on", name)
		}
	}
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("POST " + scorePath + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/proto\r\nContent-Length: 0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	cut("HTTP/1.1")

	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url(scorePath), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/proto")
	resp, err := client(t, true).Do(req)
	if err == nil {
		defer resp.Body.Close()
	}
	cut("HTTP/2")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := dial(t, r).NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, scorePath)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendMsg(&kvscoutv1.ScoreRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	cut("gRPC")
}
