package bench

import (
	"encoding/base64"
	"encoding/json"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Refusal is an error that the server answered with: the reason of its ErrorInfo, else its code.
type Refusal string

func (r Refusal) Error() string { return "refused: " + string(r) }

// Reasons of errors that are no refusals.
const (
	ReasonWrong      = "WRONG_ANSWER"
	ReasonConnection = "CONNECTION"
)

// reasonOf is what an error is counted under.
func reasonOf(err error) string {
	var r Refusal
	switch {
	case errors.As(err, &r):
		return string(r)
	case errors.Is(err, ErrWrong):
		return ReasonWrong
	}
	return ReasonConnection
}

// refusalOfConnect reads an error that connect-go gave.
func refusalOfConnect(err error) error {
	var e *connect.Error
	if !errors.As(err, &e) || !connect.IsWireError(err) {
		return err
	}
	for _, d := range e.Details() {
		if v, err := d.Value(); err == nil {
			if info, ok := v.(*errdetails.ErrorInfo); ok {
				return Refusal(info.GetReason())
			}
		}
	}
	return Refusal(e.Code().String())
}

// refusalOfGRPC reads an error that grpc-go gave.
func refusalOfGRPC(err error) error {
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return Refusal(info.GetReason())
		}
	}
	return Refusal(s.Code().String())
}

// refusalOfBody reads the body that Connect sends with an HTTP status of an error.
func refusalOfBody(body []byte, status string) error {
	var e struct {
		Code    string
		Details []struct{ Type, Value string }
	}
	if json.Unmarshal(body, &e) != nil || e.Code == "" {
		return Refusal("HTTP_" + status)
	}
	for _, d := range e.Details {
		raw, err := base64.RawStdEncoding.DecodeString(d.Value)
		info := new(errdetails.ErrorInfo)
		if d.Type == "google.rpc.ErrorInfo" && err == nil && proto.Unmarshal(raw, info) == nil {
			return Refusal(info.GetReason())
		}
	}
	return Refusal(e.Code)
}
