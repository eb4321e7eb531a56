package scorerpc

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"connectrpc.com/connect"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/scorer/codec"
)

// maxInFlight bounds the requests of one stream that are under way: as many goroutines at most, and answers not sent.
const maxInFlight = 64

// ScoreStream rates the candidates of each request as it comes.
func (s *Service) ScoreStream(ctx context.Context, stream *connect.BidiStream[kvscoutv1.ScoreStreamRequest, kvscoutv1.ScoreStreamResponse]) error {
	return s.stream(ctx, stream.Send, func() (*kvscoutv1.ScoreRequest, func(), error) {
		m, err := stream.Receive()
		return m.GetRequest(), func() {}, err
	})
}

// ScoreStreamReleased is ScoreStream with requests in memory that is used again once they are answered.
func (s *Service) ScoreStreamReleased(ctx context.Context, stream *connect.BidiStream[codec.ScoreStreamRequest, kvscoutv1.ScoreStreamResponse]) error {
	return s.stream(ctx, stream.Send, func() (*kvscoutv1.ScoreRequest, func(), error) {
		m, err := stream.Receive()
		if err != nil {
			return nil, nil, err
		}
		return m.GetRequest(), m.Release, nil
	})
}

// stream rates the requests that receive brings, each with a function that gives its memory back.
func (s *Service) stream(ctx context.Context, send func(*kvscoutv1.ScoreStreamResponse) error, receive func() (*kvscoutv1.ScoreRequest, func(), error)) error {
	if !s.streams.Enter() {
		return s.failed(ctx, indexrpc.Overloaded("more than %d streams of scores", s.opts.MaxStreams)).Connect()
	}
	defer s.streams.Leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	flow := flow{write: send, cancel: cancel}
	var wg sync.WaitGroup
	places := make(chan struct{}, maxInFlight)
	var end error
	for {
		req, release, err := receive()
		if err != nil {
			end = err
			break
		}
		places <- struct{}{}
		wg.Go(func() { // ends with its request, waited for below
			defer func() { <-places }()
			sh := sheets.Get().(*sheet)
			defer sh.Release() // the answer is written by then
			result := s.result(ctx, req, sh)
			release()
			flow.send(result)
		})
	}
	wg.Wait() // what is under way is answered first
	return s.streamEnd(ctx, end, flow.err)
}

// streamEnd is how a stream ends whose requests ended with received, and of which sending failed with sent, if it did.
func (s *Service) streamEnd(ctx context.Context, received, sent error) error {
	switch {
	case errors.Is(received, io.EOF) && sent == nil:
		return nil
	case errors.Is(received, os.ErrDeadlineExceeded): // only a server that shuts down sets one
		return s.failed(ctx, indexrpc.Failf(indexrpc.ReasonNotReady, "the server is shutting down")).Connect()
	case sent != nil:
		return sent // connect's own: the caller is gone
	default:
		return received // likewise, or what it sent is no message
	}
}

// flow sends the results of one stream.
type flow struct {
	write  func(*kvscoutv1.ScoreStreamResponse) error
	cancel context.CancelFunc // of the requests under way

	mu  sync.Mutex // guards err, and sending, which one may do at a time
	err error      // of the first send that failed; nothing is sent after it
}

func (f *flow) send(r *kvscoutv1.ScoreResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return
	}
	if f.err = f.write(&kvscoutv1.ScoreStreamResponse{Result: r}); f.err != nil {
		f.cancel()
	}
}
