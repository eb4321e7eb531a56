package server_test

import (
	"fmt"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
)

// Requests of streams lie in memory that is used again; none gets the prompt of another, by no transport.
func TestScoreStream_KeepsPromptsApart(t *testing.T) {
	r := startLarge(t)
	const calls = 200
	request := func(i int) *kvscoutv1.ScoreStreamRequest {
		return &kvscoutv1.ScoreStreamRequest{Request: &kvscoutv1.ScoreRequest{
			Id: fmt.Sprint(i), Model: "m", Tokens: &kvscoutv1.Tokens{Packed: packed(16 * (i*37%calls + 1))},
		}}
	}
	check := func(m *kvscoutv1.ScoreStreamResponse) {
		var i int
		if _, err := fmt.Sscan(m.GetResult().GetId(), &i); err != nil {
			t.Error(err)
		}
		workers, want := m.GetResult().GetResponse().GetWorkers(), uint32(16*(i*37%calls+1))
		if len(workers) != 1 || workers[0].GetHeldTokens() != want || m.GetResult().GetResponse().GetPromptTokens() != want {
			t.Errorf("request of %d tokens: %v", want, m)
		}
	}
	// flow sends all, and receives as many.
	flow := func(send func(*kvscoutv1.ScoreStreamRequest) error, receive func() (*kvscoutv1.ScoreStreamResponse, error)) {
		var sending sync.WaitGroup
		sending.Go(func() { // ends when all is sent or the call has ended, waited for below
			for i := range calls {
				if err := send(request(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
		for range calls {
			m, err := receive()
			if err != nil {
				t.Error(err)
				break
			}
			check(m)
		}
		sending.Wait()
	}
	stream, err := dial(t, r).NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, kvscoutv1connect.ScoreServiceScoreStreamProcedure)
	if err != nil {
		t.Fatal(err)
	}
	flow(func(m *kvscoutv1.ScoreStreamRequest) error { return stream.SendMsg(proto.Message(m)) },
		func() (*kvscoutv1.ScoreStreamResponse, error) {
			m := new(kvscoutv1.ScoreStreamResponse)
			return m, stream.RecvMsg(m)
		})
	_ = stream.CloseSend()
	for _, opts := range [][]connect.ClientOption{nil, {connect.WithProtoJSON()}} {
		both := kvscoutv1connect.NewScoreServiceClient(client(t, true), r.url(""), opts...).ScoreStream(t.Context())
		flow(both.Send, both.Receive)
		_ = both.CloseRequest()
		_ = both.CloseResponse()
	}
}
