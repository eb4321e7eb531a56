package codec

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// JSON is the codec of protobuf's JSON form, under a name of connect's: "json" or "json; charset=utf-8".
type JSON struct{ As string }

var _ connect.Codec = JSON{}

// Name implements connect.Codec.
func (c JSON) Name() string { return c.As }

// Marshal implements connect.Codec.
func (c JSON) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalAppend appends the message to dst, which connect uses again. It releases a ScoreResponse of this package.
func (JSON) MarshalAppend(dst []byte, message any) ([]byte, error) {
	if answer, ok := message.(*ScoreResponse); ok {
		defer answer.Release()
		message = answer.ScoreResponse
	}
	w := jsonWriter{buf: dst}
	switch m := message.(type) {
	case *kvscoutv1.ScoreResponse:
		if m != nil {
			w.response(m)
		}
	case *kvscoutv1.ScoreBatchResponse:
		w.batch(m)
	}
	if len(w.buf) > len(dst) && !w.odd {
		return w.buf, nil
	}
	m, ok := message.(proto.Message)
	if !ok {
		return nil, errNoMessage(message)
	}
	return protojson.MarshalOptions{}.MarshalAppend(dst, m)
}

// Unmarshal implements connect.Codec.
func (JSON) Unmarshal(data []byte, message any) error {
	return read(data, message, (*ScoreRequest).readJSON, (*ScoreBatchRequest).readJSON, unmarshalJSON)
}

// unmarshalJSON reads as connect's own codec does. Fields that are not known are passed over, so that callers may be newer.
func unmarshalJSON(data []byte, m proto.Message) error {
	if len(data) == 0 {
		return errors.New("zero-length payload is not a valid JSON object")
	}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, m); err != nil {
		return fmt.Errorf("unmarshal into %T: %w", m, told(err))
	}
	return nil
}
