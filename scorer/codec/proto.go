package codec

import (
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// Proto is the codec of binary messages.
type Proto struct{}

var _ connect.Codec = Proto{}

// Name implements connect.Codec.
func (Proto) Name() string { return "proto" }

// Marshal implements connect.Codec.
func (c Proto) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalAppend appends the message to dst, which connect uses again. It releases a ScoreResponse of this package.
func (Proto) MarshalAppend(dst []byte, message any) ([]byte, error) {
	if answer, ok := message.(*ScoreResponse); ok {
		defer answer.Release()
		message = answer.ScoreResponse
	}
	if out, ok := appendAnswer(dst, message); ok {
		return out, nil
	}
	m, ok := message.(proto.Message)
	if !ok {
		return nil, errNoMessage(message)
	}
	return proto.MarshalOptions{}.MarshalAppend(dst, m)
}

// Unmarshal implements connect.Codec.
func (Proto) Unmarshal(data []byte, message any) error {
	if m, ok := message.(*ScoreStreamRequest); ok && m.read(data) {
		return nil
	}
	return read(data, message, (*ScoreRequest).read, (*ScoreBatchRequest).read, unmarshal)
}

// read reads a message: a request of this package by hand, and those that are not read so, and all others, by general.
func read(data []byte, message any, one func(*ScoreRequest, []byte) bool, batch func(*ScoreBatchRequest, []byte) bool, general func([]byte, proto.Message) error) error {
	switch m := message.(type) {
	case *ScoreRequest:
		if one(m, data) {
			return nil
		}
		m.Release()
		return general(data, &m.ScoreRequest)
	case *ScoreBatchRequest:
		if batch(m, data) {
			return nil
		}
		m.Release()
		return general(data, &m.ScoreBatchRequest)
	case *ScoreStreamRequest:
		m.Release()
		return general(data, &m.ScoreStreamRequest)
	case proto.Message:
		return general(data, m)
	default:
		return errNoMessage(message)
	}
}

func unmarshal(data []byte, m proto.Message) error {
	if err := proto.Unmarshal(data, m); err != nil {
		return fmt.Errorf("unmarshal into %T: %w", m, err)
	}
	return nil
}

func errNoMessage(message any) error { return fmt.Errorf("%T is no protobuf message", message) }

// appendAnswer appends the answers that are written by hand. It is false for other messages, and for answers that protobuf
// is to judge.
func appendAnswer(dst []byte, message any) ([]byte, bool) {
	w := writer{buf: dst}
	switch m := message.(type) {
	case *kvscoutv1.ScoreResponse:
		w.response(m)
	case *kvscoutv1.ScoreBatchResponse:
		for _, r := range m.GetResults() {
			at := w.open(1)
			w.result(r)
			w.close(at)
		}
	case *kvscoutv1.ScoreStreamResponse:
		if r := m.GetResult(); r != nil {
			at := w.open(1)
			w.result(r)
			w.close(at)
		}
	default:
		return dst, false
	}
	return w.buf, !w.odd
}
