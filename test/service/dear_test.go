package service

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/bench"
)

// dear is calls that are dear to the server and cheap to its client: few bytes ask about very many ranks, and the answer names the best
// of them. So a client beside a server can send many times what that can answer.
type dear struct {
	*bench.Workload
	requests []*kvscoutv1.ScoreRequest
}

// Workers that hold something of a prompt, and those that hold nothing, with so many ranks each.
const (
	dearWorkers = 8
	dearIdle    = 16
	dearRanks   = 1024
)

func newDear(t *testing.T) *dear {
	t.Helper()
	w, err := bench.New(256, dearWorkers, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	d := &dear{Workload: w}
	for i := range w.Prompts {
		var packed []byte
		for _, k := range w.Keys(i) {
			packed = binary.LittleEndian.AppendUint64(packed, uint64(k))
		}
		d.requests = append(d.requests, &kvscoutv1.ScoreRequest{
			Model: w.Model, MaxWorkers: 1,
			BlockHashes: &kvscoutv1.BlockHashes{BlockSize: bench.BlockSize, Packed: packed, PromptTokens: uint32(w.Tokens())},
		})
	}
	return d
}

// fill gives a server the workers.
func (d *dear) fill(t *testing.T, s *server) {
	t.Helper()
	if err := d.Fill(t.Context(), s.index, nil); err != nil {
		t.Fatal(err)
	}
	for i := range dearIdle {
		spec := &kvscoutv1.WorkerSpec{WorkerId: fmt.Sprint("idle", i), Engine: "vllm", Model: d.Model, BlockSize: bench.BlockSize, Ranks: dearRanks}
		if _, err := s.index.RegisterWorker(t.Context(), connect.NewRequest(&kvscoutv1.RegisterWorkerRequest{Worker: spec})); err != nil {
			t.Fatal(err)
		}
	}
}

// check says what is wrong with the answer to request i.
func (d *dear) check(i int, res *kvscoutv1.ScoreResponse) error {
	best, list := d.Best(i), res.GetWorkers()
	if len(list) != 1 || list[0].GetWorkerId() != d.Worker(best) || list[0].GetHeldTokens() != uint32(d.Held(i, best)) ||
		res.GetWorkersOmitted() != dearWorkers+dearIdle*dearRanks-1 {
		return fmt.Errorf("%w: %v and %d more, want %s with %d tokens", bench.ErrWrong, list, res.GetWorkersOmitted(), d.Worker(best), d.Held(i, best))
	}
	return nil
}

// callers make an overload's calls by one protocol.
type callers func(d *dear, t *testing.T, addr string, n int) []bench.Caller

// connect are callers with a connection each, which send ready-made bytes.
func (d *dear) connect(t *testing.T, addr string, n int) (out []bench.Caller) {
	t.Helper()
	post := &bench.Post{
		Dial:        func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", addr) },
		Path:        kvscoutv1connect.ScoreServiceScoreProcedure,
		ContentType: "application/proto",
		Header:      "Connect-Protocol-Version: 1\r\n",
		Check: func(i int, answer []byte, _ bool) error {
			res := new(kvscoutv1.ScoreResponse)
			if err := proto.Unmarshal(answer, res); err != nil {
				return fmt.Errorf("%w: %w", bench.ErrWrong, err)
			}
			return d.check(i, res)
		},
	}
	for _, r := range d.requests {
		body, err := proto.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		post.Bodies = append(post.Bodies, body)
	}
	messages := post.Messages()
	for i := range n {
		out = append(out, bench.NewLean(post, messages, i))
	}
	return out
}

// grpc are callers by grpc-go that share a few connections.
func (d *dear) grpc(t *testing.T, addr string, n int) (out []bench.Caller) {
	t.Helper()
	var conns []*grpc.ClientConn
	for range min(16, n) {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		conns = append(conns, conn)
	}
	for i := range n {
		out = append(out, &grpcCaller{dear: d, conn: conns[i%len(conns)], first: i})
	}
	return out
}

// grpcCaller calls by grpc-go.
type grpcCaller struct {
	dear  *dear
	conn  *grpc.ClientConn
	first int
}

// Call implements bench.Caller.
func (c *grpcCaller) Call(ctx context.Context, n int) error {
	i, res := (c.first+n)%len(c.dear.requests), new(kvscoutv1.ScoreResponse)
	err := c.conn.Invoke(ctx, kvscoutv1connect.ScoreServiceScoreProcedure, c.dear.requests[i], res)
	if err == nil {
		return c.dear.check(i, res)
	}
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return bench.Refusal(info.GetReason())
		}
	}
	return err
}

// Close implements bench.Caller. Connections are shared, and end with the test.
func (c *grpcCaller) Close() error { return nil }
