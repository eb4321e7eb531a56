package client

import (
	"encoding/binary"
	"errors"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// domain of the reasons of kvscout.
const domain = "kvscout"

// Reason is why the server refused a call, such as "UNKNOWN_MODEL"; proto/kvscout/v1 has the reasons of each method. It is
// empty if err is none of the server's own: ask connect.CodeOf then.
func Reason(err error) string {
	if info := detail[*errdetails.ErrorInfo](err); info.GetDomain() == domain {
		return info.GetReason()
	}
	return ""
}

// RetryAfter is how long the server asks to wait before another try, and whether it asks for one at all.
func RetryAfter(err error) (time.Duration, bool) {
	info := detail[*errdetails.RetryInfo](err)
	return max(0, info.GetRetryDelay().AsDuration()), info != nil
}

// detail is the first detail of that type; the zero of T if there is none.
func detail[T any](err error) (out T) {
	var e *connect.Error
	if !errors.As(err, &e) {
		return out
	}
	for _, d := range e.Details() {
		if v, err := d.Value(); err == nil {
			if found, ok := v.(T); ok {
				return found
			}
		}
	}
	return out
}

// Tokens is a prompt for ScoreRequest.Tokens in the form that costs the server the least to read.
func Tokens[T ~int32 | ~uint32](ids []T) *kvscoutv1.Tokens {
	packed := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		packed = binary.LittleEndian.AppendUint32(packed, uint32(id))
	}
	return &kvscoutv1.Tokens{Packed: packed}
}
