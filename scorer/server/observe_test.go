package server_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/calls"
	"github.com/kvscout/kvscout/scorer/server"
)

// ended gathers how calls ended.
type ended struct {
	mu   sync.Mutex // guards list
	list []calls.Done
}

func (e *ended) add(d calls.Done) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, d)
}

// code waits for a call of the method and takes its code.
func (e *ended) code(t *testing.T, method string) (code string) {
	t.Helper()
	eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, d := range e.list {
			if d.Method == method && d.Duration > 0 {
				code = d.Code
			}
		}
		e.list = nil
		return code != ""
	})
	return code
}

var (
	fine   = &kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Ids: []int64{1}}}
	failed = &kvscoutv1.ScoreRequest{Model: "x", Tokens: &kvscoutv1.Tokens{Ids: []int64{1}}}
)

// Every protocol answers with the request's id, errors too, and every call is counted by its code.
func TestServe_RequestIDs(t *testing.T) {
	var got ended
	r := start(t, func(o *server.Options) { o.Observe = got.add })
	for name, opts := range map[string][]connect.ClientOption{
		"connect": nil, "json": {connect.WithProtoJSON()}, "grpc": {connect.WithGRPC()}, "grpcweb": {connect.WithGRPCWeb()},
		"get": {connect.WithHTTPGet()},
	} {
		c := kvscoutv1connect.NewScoreServiceClient(client(t, true), r.url(""), opts...)
		for msg, code := range map[*kvscoutv1.ScoreRequest]string{fine: "ok", failed: "not_found"} {
			req := connect.NewRequest(msg)
			req.Header().Set("X-Request-Id", "id-"+name)
			resp, err := c.Score(t.Context(), req)
			var header http.Header
			var e *connect.Error
			if errors.As(err, &e) {
				header = e.Meta()
			} else if err == nil {
				header = resp.Header()
			}
			if id := header.Values("X-Request-Id"); len(id) != 1 || id[0] != "id-"+name {
				t.Errorf("%s, %s: request ids %q", name, code, id)
			}
			if counted := got.code(t, scorePath[1:]); counted != code {
				t.Errorf("%s: counted as %s, want %s", name, counted, code)
			}
			eventually(t, func() bool { return strings.Contains(r.log.String(), "request_id=id-"+name) })
		}
	}
	// grpc-go, which is not ours: its header, or its trailer where there is nothing but that.
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "id-of-grpc-go")
	for _, msg := range []*kvscoutv1.ScoreRequest{fine, failed} {
		var header, trailer metadata.MD
		_ = dial(t, r).Invoke(ctx, scorePath, msg, new(kvscoutv1.ScoreResponse), grpc.Header(&header), grpc.Trailer(&trailer))
		if id := append(header.Get("x-request-id"), trailer.Get("x-request-id")...); len(id) != 1 || id[0] != "id-of-grpc-go" {
			t.Errorf("grpc-go: header %v, trailer %v", header, trailer)
		}
	}
}

// Calls that never come to a handler are counted by what was answered.
func TestServe_CountsUnreadCalls(t *testing.T) {
	var got ended
	r := start(t, func(o *server.Options) { o.Observe = got.add; o.ReadMaxBytes = 1000 })
	large := &kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Packed: packed(1000)}}
	for name, opts := range map[string][]connect.ClientOption{"connect": nil, "grpc": {connect.WithGRPC()}} {
		_, err := kvscoutv1connect.NewScoreServiceClient(client(t, true), r.url(""), opts...).Score(t.Context(), connect.NewRequest(large))
		if connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Fatal(err)
		}
		if code := got.code(t, scorePath[1:]); code != "resource_exhausted" {
			t.Errorf("%s: counted as %s", name, code)
		}
	}
	resp, err := client(t, false).Post(r.url(scorePath), "application/json", strings.NewReader("{"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if code := got.code(t, scorePath[1:]); code != "invalid_argument" || resp.Header.Get("X-Request-Id") == "" {
		t.Errorf("half a message: %s, %v", code, resp.Header)
	}
	resp, err = client(t, false).Get(r.url("/somewhere"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if code := got.code(t, calls.MethodOther); code != "unimplemented" {
		t.Errorf("no method: %s", code)
	}
}
