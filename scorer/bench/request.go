package bench

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// Protocol is what a caller speaks.
type Protocol string

const (
	// ProtocolConnect is Connect with protobuf over HTTP/1.1.
	ProtocolConnect Protocol = "connect"
	// ProtocolJSON is Connect with JSON over HTTP/1.1.
	ProtocolJSON Protocol = "connect-json"
	// ProtocolGRPC is gRPC over HTTP/2.
	ProtocolGRPC Protocol = "grpc"
)

// MaxBatch bounds Form.Batch, as ScoreBatch does.
const MaxBatch = 256

// Form is how prompts are asked for.
type Form struct {
	// Hashes: by block keys instead of tokens.
	Hashes bool
	// Batch asks with ScoreBatch for so many prompts at once; 0 with Score for one.
	Batch int
}

// request asks for prompt p.
func (w *Workload) request(p int, f Form) *kvscoutv1.ScoreRequest {
	req := &kvscoutv1.ScoreRequest{Model: w.Model}
	switch {
	case f.Hashes:
		keys := w.Keys(p)
		packed := make([]byte, 0, 8*len(keys))
		for _, k := range keys {
			packed = binary.LittleEndian.AppendUint64(packed, uint64(k))
		}
		req.BlockHashes = &kvscoutv1.BlockHashes{BlockSize: BlockSize, Packed: packed, PromptTokens: uint32(w.Tokens())}
	default:
		packed := make([]byte, 0, 4*w.Tokens())
		for _, t := range w.Prompts[p] {
			packed = binary.LittleEndian.AppendUint32(packed, t)
		}
		req.Tokens = &kvscoutv1.Tokens{Packed: packed}
	}
	return req
}

// call is the n-th call: which method, and its message. A batch asks for the prompts that follow n.
func (w *Workload) call(n int, f Form) proto.Message {
	if f.Batch == 0 {
		return w.request(n%len(w.Prompts), f)
	}
	req := &kvscoutv1.ScoreBatchRequest{}
	for i := range f.Batch {
		req.Requests = append(req.Requests, w.request((n+i)%len(w.Prompts), f))
	}
	return req
}

// encode is a message as the protocol carries it, without the prefix that gRPC puts before it.
func encode(m proto.Message, p Protocol) ([]byte, error) {
	switch p {
	case ProtocolConnect, ProtocolGRPC:
		return proto.Marshal(m)
	case ProtocolJSON:
		return compactJSON(m)
	}
	return nil, fmt.Errorf("%w: protocol %q", ErrWorkload, p)
}

// compactJSON has no space between a name and its value, as most encoders write it.
func compactJSON(m proto.Message) ([]byte, error) {
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	return compact(text)
}
