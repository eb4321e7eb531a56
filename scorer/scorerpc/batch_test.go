package scorerpc_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/scorerpc"
)

// varying are the fields that differ between two calls.
var varying = []cmp.Option{
	protocmp.Transform(), protocmp.IgnoreFields(&kvscoutv1.Freshness{}, "age_seconds"), protocmp.IgnoreFields(&kvscoutv1.ScoreResponse{}, "index_version"),
}

// three workers of model m hold 4, 8 and 12 of the tokens 1..16; a fourth serves n.
func three(t testing.TB) *rig {
	r := start(t, scorerpc.Options{MaxPromptTokens: 1000})
	for i := range 3 {
		id := fmt.Sprint("w", i)
		r.worker(t, id, "m", events.EngineVLLM, blockSize(4))
		r.publish(t, id, store{first: 1, tokens: seq(1, uint32(4+4*i)), size: 4}.event())
	}
	r.worker(t, "x", "n", events.EngineVLLM)
	return r
}

func requests(n int) []*kvscoutv1.ScoreRequest {
	var out []*kvscoutv1.ScoreRequest
	for i := range n {
		out = append(out, &kvscoutv1.ScoreRequest{Id: fmt.Sprint("r", i), Model: "m", Tokens: ids(seq(1, uint32(1+i%20)))})
	}
	return out
}

// Each request of a batch is answered as Score would, whatever became of the others; over every protocol.
func TestScoreBatch(t *testing.T) {
	r := three(t)
	list := requests(40)
	list[3] = &kvscoutv1.ScoreRequest{Id: "bad", Model: "nobody", Tokens: ids(seq(1, 4))}
	list[5] = &kvscoutv1.ScoreRequest{Model: "m"}
	for protocol, c := range r.byProtocol {
		resp, err := c.ScoreBatch(t.Context(), connect.NewRequest(&kvscoutv1.ScoreBatchRequest{Requests: list}))
		if err != nil {
			t.Fatalf("%s: %v", protocol, err)
		}
		for i, got := range resp.Msg.GetResults() {
			if got.GetId() != list[i].GetId() {
				t.Errorf("%s: result %d is of %q", protocol, i, got.GetId())
			}
			if i == 3 || i == 5 {
				continue
			}
			if diff := cmp.Diff(r.score(t, list[i]), got.GetResponse(), varying...); diff != "" || got.GetError() != nil {
				t.Errorf("%s: result %d (-Score +batch):\n%s", protocol, i, diff)
			}
		}
		if e := resp.Msg.GetResults()[3].GetError(); e.GetReason() != "UNKNOWN_MODEL" || e.GetCode() != uint32(connect.CodeNotFound) || e.GetMessage() == "" {
			t.Errorf("%s: %v", protocol, e)
		}
		if e := resp.Msg.GetResults()[5].GetError(); e.GetReason() != "NO_PROMPT" {
			t.Errorf("%s: %v", protocol, e)
		}
	}
	_, err := r.ScoreBatch(t.Context(), connect.NewRequest(&kvscoutv1.ScoreBatchRequest{}))
	wantReason(t, err, connect.CodeInvalidArgument, "NO_REQUESTS")
	_, err = r.ScoreBatch(t.Context(), connect.NewRequest(&kvscoutv1.ScoreBatchRequest{Requests: requests(257)}))
	wantReason(t, err, connect.CodeResourceExhausted, "TOO_MANY_REQUESTS")
}

// Requests of a stream are answered by id, each as Score would; more of them than may be under way at once.
func TestScoreStream(t *testing.T) {
	r := three(t)
	const n = 500
	list := requests(n)
	list[7] = &kvscoutv1.ScoreRequest{Id: "r7", Model: "nobody", Tokens: ids(seq(1, 4))}
	stream := r.byProtocol["grpc"].ScoreStream(t.Context())
	sent := make(chan error, 1)
	go func() { // ends when all is sent or the stream broken; waited for on sent
		for _, req := range list {
			if err := stream.Send(&kvscoutv1.ScoreStreamRequest{Request: req}); err != nil {
				sent <- err
				return
			}
		}
		sent <- stream.CloseRequest()
	}()
	got := make(map[string]*kvscoutv1.ScoreResult)
	for {
		resp, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[resp.GetResult().GetId()] = resp.GetResult()
	}
	if err := <-sent; err != nil || len(got) != n {
		t.Fatalf("%d answers, %v", len(got), err)
	}
	for i, req := range list {
		res := got[req.GetId()]
		if i == 7 {
			if res.GetError().GetReason() != "UNKNOWN_MODEL" || res.GetResponse() != nil {
				t.Errorf("%v", res)
			}
			continue
		}
		if diff := cmp.Diff(r.score(t, req), res.GetResponse(), varying...); diff != "" {
			t.Fatalf("request %d (-Score +stream):\n%s", i, diff)
		}
	}
}

// An interactive caller gets each answer before it sends the next request.
func TestScoreStream_OneByOne(t *testing.T) {
	r := three(t)
	stream := r.byProtocol["grpc"].ScoreStream(t.Context())
	for _, req := range requests(20) {
		if err := stream.Send(&kvscoutv1.ScoreStreamRequest{Request: req}); err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Receive()
		if err != nil || resp.GetResult().GetId() != req.GetId() {
			t.Fatalf("%v, %v", resp, err)
		}
	}
	if err := stream.Send(&kvscoutv1.ScoreStreamRequest{}); err != nil {
		t.Fatal(err)
	}
	if resp, err := stream.Receive(); err != nil || resp.GetResult().GetError().GetReason() != "NO_PROMPT" {
		t.Errorf("no request: %v, %v", resp, err)
	}
	if err := stream.CloseRequest(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("end: %v", err)
	}
	_ = stream.CloseResponse()
}

func TestRule17_StreamsAreBounded(t *testing.T) {
	r := start(t, scorerpc.Options{MaxStreams: 1})
	r.worker(t, "w0", "m", events.EngineVLLM)
	first := r.byProtocol["grpc"].ScoreStream(t.Context())
	if err := first.Send(&kvscoutv1.ScoreStreamRequest{Request: requests(1)[0]}); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Receive(); err != nil {
		t.Fatal(err)
	}
	second := r.byProtocol["grpc"].ScoreStream(t.Context())
	_ = second.Send(&kvscoutv1.ScoreStreamRequest{Request: requests(1)[0]}) // may meet the end already
	_, err := second.Receive()
	wantReason(t, err, connect.CodeResourceExhausted, "OVERLOADED")
	if retryOf(err) <= 0 {
		t.Error("no time to wait is told")
	}
	_ = first.CloseRequest()
	if _, err := first.Receive(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
