package bench

import (
	"context"
	"net"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
)

// sender makes one call.
type sender func(context.Context, proto.Message) (proto.Message, error)

// stockCaller calls through a client that people use.
type stockCaller struct {
	w     *Workload
	calls []proto.Message // made before, sent in turn
	first int             // of calls: call 0
	send  sender
}

func (c *stockCaller) Call(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	i := (c.first + n) % len(c.calls)
	answer, err := c.send(ctx, c.calls[i])
	if err != nil {
		return err
	}
	return c.w.checkMessage(i, answer, wholly(n, len(c.calls)))
}

// Close does nothing: connections are shared.
func (c *stockCaller) Close() error { return nil }

// connectSender calls through connect-go, over HTTP/1.1.
func connectSender(t Target, protocol Protocol, connections int) (send sender, end func() error) {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return t.Dial(ctx) },
		// Its default keeps two connections and opens others anew for each call.
		MaxIdleConnsPerHost: connections,
		MaxConnsPerHost:     connections,
		DisableCompression:  true,
		Protocols:           new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(true)
	opts := []connect.ClientOption{connect.WithAcceptCompression("gzip", nil, nil)}
	if protocol == ProtocolJSON {
		opts = append(opts, connect.WithProtoJSON())
	}
	client := kvscoutv1connect.NewScoreServiceClient(&http.Client{Transport: transport}, "http://kvscout", opts...)
	send = func(ctx context.Context, m proto.Message) (proto.Message, error) {
		if batch, ok := m.(*kvscoutv1.ScoreBatchRequest); ok {
			res, err := client.ScoreBatch(ctx, withHeader(connect.NewRequest(batch), t.Header))
			if err != nil {
				return nil, refusalOfConnect(err)
			}
			return res.Msg, nil
		}
		res, err := client.Score(ctx, withHeader(connect.NewRequest(m.(*kvscoutv1.ScoreRequest)), t.Header))
		if err != nil {
			return nil, refusalOfConnect(err)
		}
		return res.Msg, nil
	}
	return send, func() error { transport.CloseIdleConnections(); return nil }
}

func withHeader[T any](r *connect.Request[T], h http.Header) *connect.Request[T] {
	for name, values := range h {
		r.Header()[name] = values
	}
	return r
}

// grpcConnection dials through grpc-go.
func grpcConnection(t Target) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///kvscout",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return t.Dial(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
}

// grpcSender calls on a connection of grpc-go.
func grpcSender(conn *grpc.ClientConn, h http.Header) sender {
	var pairs []string
	for name, values := range h {
		for _, v := range values {
			pairs = append(pairs, strings.ToLower(name), v)
		}
	}
	return func(ctx context.Context, m proto.Message) (proto.Message, error) {
		if len(pairs) > 0 {
			ctx = metadata.AppendToOutgoingContext(ctx, pairs...)
		}
		method, answer := kvscoutv1connect.ScoreServiceScoreProcedure, proto.Message(new(kvscoutv1.ScoreResponse))
		if _, ok := m.(*kvscoutv1.ScoreBatchRequest); ok {
			method, answer = kvscoutv1connect.ScoreServiceScoreBatchProcedure, new(kvscoutv1.ScoreBatchResponse)
		}
		if err := conn.Invoke(ctx, method, m, answer); err != nil {
			return nil, refusalOfGRPC(err)
		}
		return answer, nil
	}
}
