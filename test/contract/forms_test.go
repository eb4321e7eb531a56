package contract

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// exchange is a request over HTTP that a client which knows nothing of RPC can send.
type exchange struct {
	Method string            `json:"method"`
	Path   string            `json:"path"` // with its query
	Header map[string]string `json:"header"`
	Body   []byte            `json:"body"`
	// Frames is after how many messages of the answer to hang up; 0 is never.
	Frames int `json:"frames"`
	// HTTP2 is needed by streams of both directions.
	HTTP2 bool `json:"http2"`
}

// reply is the answer, as far as it was taken.
type reply struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Body   []byte      `json:"body"`
}

// web sends exchanges.
type web func(*testing.T, exchange) reply

// form is a protocol in a codec, over HTTP.
type form struct {
	send       web
	json, grpc bool
	get        bool // calls without side effects go by GET
}

func streamed(m protoreflect.MethodDescriptor) bool {
	return m.IsStreamingClient() || m.IsStreamingServer()
}

func (f form) call(t *testing.T, m protoreflect.MethodDescriptor, take int, in ...proto.Message) outcome {
	t.Helper()
	e := exchange{Method: "POST", Path: "/" + path(m), Frames: take, HTTP2: m.IsStreamingClient(), Header: make(map[string]string)}
	for _, message := range in {
		b := f.encode(t, message)
		if f.grpc || streamed(m) {
			b = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
		}
		e.Body = append(e.Body, b...)
	}
	e.Header["Content-Type"] = f.contentType(m)
	if !f.grpc {
		e.Header["Connect-Protocol-Version"] = "1"
	}
	if f.get {
		e.Method, e.Header = "GET", nil
		q := url.Values{"connect": {"v1"}, "encoding": {"proto"}, "base64": {"1"}, "message": {base64.RawURLEncoding.EncodeToString(e.Body)}}
		e.Path, e.Body = e.Path+"?"+q.Encode(), nil
	}
	r := f.send(t, e)
	if f.grpc {
		return f.readGRPCWeb(t, m, r)
	}
	return f.readConnect(t, m, r)
}

func (f form) contentType(m protoreflect.MethodDescriptor) string {
	codec := "proto"
	if f.json {
		codec = "json"
	}
	switch {
	case f.grpc:
		return "application/grpc-web+" + codec
	case streamed(m):
		return "application/connect+" + codec
	default:
		return "application/" + codec
	}
}

func (f form) encode(t *testing.T, m proto.Message) []byte {
	t.Helper()
	marshal := proto.Marshal
	if f.json {
		marshal = protojson.Marshal
	}
	b, err := marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (f form) decode(t *testing.T, b []byte, m protoreflect.MethodDescriptor) proto.Message {
	t.Helper()
	out, unmarshal := output(m), proto.Unmarshal
	if f.json {
		unmarshal = protojson.Unmarshal
		// connectrpc.com/grpchealth has other names for the states of health than gRPC's own proto, under which they are
		// the same numbers. gRPC has no JSON form of them.
		b = bytes.ReplaceAll(b, []byte("SERVING_STATUS_"), nil)
	}
	if err := unmarshal(b, out); err != nil {
		t.Fatalf("%s: %v in %q", m.FullName(), err, b)
	}
	return out
}

// frame is one part of a body: a message, or with flags what ends it.
type frame struct {
	flags byte
	data  []byte
}

// frames cuts a body; what is torn off at its end is left out.
func frames(b []byte) (out []frame) {
	for len(b) >= 5 {
		end := 5 + int(binary.BigEndian.Uint32(b[1:]))
		if end > len(b) {
			break
		}
		out = append(out, frame{b[0], b[5:end]})
		b = b[end:]
	}
	return out
}

func (f form) readConnect(t *testing.T, m protoreflect.MethodDescriptor, r reply) (out outcome) {
	t.Helper()
	if !streamed(m) {
		if r.Status != http.StatusOK {
			return connectError(t, r.Body)
		}
		return outcome{messages: []proto.Message{f.decode(t, r.Body, m)}}
	}
	if r.Status != http.StatusOK {
		return outcome{code: fmt.Sprintf("http %d", r.Status)}
	}
	for _, part := range frames(r.Body) {
		if part.flags&2 == 0 {
			out.messages = append(out.messages, f.decode(t, part.data, m))
			continue
		}
		var end struct{ Error json.RawMessage }
		if err := json.Unmarshal(part.data, &end); err != nil {
			t.Fatalf("%s: %v in %q", m.FullName(), err, part.data)
		}
		if end.Error != nil {
			failed := connectError(t, end.Error)
			out.code, out.reason = failed.code, failed.reason
		}
	}
	return out
}

// connectError reads an error in Connect's JSON. Its details are base64 of messages.
func connectError(t *testing.T, b []byte) outcome {
	t.Helper()
	var e struct {
		Code    string
		Details []struct{ Type, Value string }
	}
	if err := json.Unmarshal(b, &e); err != nil || e.Code == "" {
		t.Fatalf("no error of Connect: %v in %q", err, b)
	}
	out := outcome{code: e.Code}
	for _, d := range e.Details {
		if d.Type == "google.rpc.ErrorInfo" {
			value, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(d.Value, "="))
			if err != nil {
				t.Fatal(err)
			}
			out.reason = reason(t, value)
		}
	}
	return out
}

// reason is that of a google.rpc.ErrorInfo.
func reason(t *testing.T, value []byte) string {
	t.Helper()
	info := new(errdetails.ErrorInfo)
	if err := proto.Unmarshal(value, info); err != nil || info.GetDomain() != "kvscout" {
		t.Errorf("ErrorInfo: %v, %v", err, info)
	}
	return info.GetReason()
}

// readGRPCWeb reads messages and the trailers, which are the last frame or, of an answer without a message, headers.
func (f form) readGRPCWeb(t *testing.T, m protoreflect.MethodDescriptor, r reply) (out outcome) {
	t.Helper()
	if r.Status != http.StatusOK {
		return outcome{code: fmt.Sprintf("http %d", r.Status)}
	}
	trailer := r.Header
	for _, part := range frames(r.Body) {
		if part.flags&0x80 == 0 {
			out.messages = append(out.messages, f.decode(t, part.data, m))
			continue
		}
		trailer = make(http.Header)
		for line := range strings.Lines(string(part.data)) {
			name, value, _ := strings.Cut(line, ":")
			trailer.Add(name, strings.TrimSpace(value))
		}
	}
	n, err := strconv.Atoi(trailer.Get("Grpc-Status"))
	if err != nil && len(out.messages) == 0 {
		t.Fatalf("%s: no status in %v", m.FullName(), trailer)
	}
	if n == 0 { // or hung up before it came
		return out
	}
	out.code = snake(code.Code(n).String())
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(trailer.Get("Grpc-Status-Details-Bin"), "="))
	st := new(statuspb.Status)
	if err != nil || proto.Unmarshal(b, st) != nil {
		t.Fatalf("%s: details %v in %v", m.FullName(), err, trailer)
	}
	i := slices.IndexFunc(st.GetDetails(), func(a *anypb.Any) bool {
		return strings.HasSuffix(a.GetTypeUrl(), "google.rpc.ErrorInfo")
	})
	if i >= 0 {
		out.reason = reason(t, st.GetDetails()[i].GetValue())
	}
	return out
}
