package server_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/server"
)

// probe is a Score handler for what the real one cannot be brought to do.
type probe func(ctx context.Context) error

type probing struct {
	kvscoutv1connect.UnimplementedScoreServiceHandler
	call probe
}

func (p probing) Score(ctx context.Context, _ *connect.Request[kvscoutv1.ScoreRequest]) (*connect.Response[kvscoutv1.ScoreResponse], error) {
	if err := p.call(ctx); err != nil {
		return nil, err
	}
	return connect.NewResponse(&kvscoutv1.ScoreResponse{}), nil
}

func scoring(p probe) func(*server.Options) {
	return func(o *server.Options) { o.Score = probing{call: p} }
}

func reason(err error) string {
	var e *connect.Error
	if !errors.As(err, &e) {
		return ""
	}
	for _, d := range e.Details() {
		if m, err := d.Value(); err == nil {
			if info, ok := m.(*errdetails.ErrorInfo); ok {
				return info.GetReason()
			}
		}
	}
	return ""
}

// A shutdown lets calls in flight finish, over HTTP/1.1 and HTTP/2, and takes no new ones.
func TestServe_Graceful(t *testing.T) {
	for name, h2 := range map[string]bool{"http/1.1": false, "h2c": true} {
		t.Run(name, func(t *testing.T) {
			entered, leave := make(chan struct{}), make(chan struct{})
			r := start(t, scoring(func(context.Context) error { close(entered); <-leave; return nil }))
			c := kvscoutv1connect.NewScoreServiceClient(client(t, h2), r.url(""))
			got := make(chan error, 1)
			go func() { // ends with its call, waited for below
				_, err := c.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{}))
				got <- err
			}()
			<-entered
			r.stop()
			eventually(t, func() bool {
				conn, err := net.Dial("tcp", r.addr)
				if err == nil {
					_ = conn.Close()
				}
				return err != nil
			})
			close(leave)
			if err := <-got; err != nil {
				t.Errorf("the call in flight got %v", err)
			}
			if err := <-r.done; err != nil {
				t.Errorf("serve: %v", err)
			}
		})
	}
}

// A call that outlasts the grace period is cut off, and Serve says so.
func TestServe_GraceEnds(t *testing.T) {
	entered := make(chan struct{})
	r := start(t, scoring(func(ctx context.Context) error { close(entered); <-ctx.Done(); return ctx.Err() }),
		func(o *server.Options) { o.Grace = 10 * time.Millisecond })
	got := make(chan error, 1)
	go func() { // ends when the call is cut off, waited for below
		_, err := kvscoutv1connect.NewScoreServiceClient(client(t, false), r.url("")).Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{}))
		got <- err
	}()
	<-entered
	r.stop()
	if err := <-r.done; !errors.Is(err, server.ErrGrace) {
		t.Errorf("serve: %v, want ErrGrace", err)
	}
	if err := <-got; err == nil {
		t.Error("the call was not cut off")
	}
}

// Streams do not hold a shutdown up: they end with a reason.
func TestServe_EndsStreams(t *testing.T) {
	r := start(t)
	c := kvscoutv1connect.NewIndexServiceClient(client(t, true), r.url(""), connect.WithGRPC())
	s, err := c.StreamStats(t.Context(), connect.NewRequest(&kvscoutv1.StreamStatsRequest{Interval: durationpb.New(time.Hour)}))
	if err != nil || !s.Receive() {
		t.Fatalf("first answer: %v, %v", err, s.Err())
	}
	r.stop()
	if s.Receive() || connect.CodeOf(s.Err()) != connect.CodeUnavailable || reason(s.Err()) != "NOT_READY" {
		t.Errorf("the stream ended with %v, reason %q", s.Err(), reason(s.Err()))
	}
	_ = s.Close()
	if err := <-r.done; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// Case 146: a unary call is cut after its limit, a stream on the same connection outlives it.
func TestServe_Case146_CallTimeout(t *testing.T) {
	var outcome atomic.Value
	r := start(t, scoring(func(ctx context.Context) error { <-ctx.Done(); outcome.Store(ctx.Err()); return ctx.Err() }),
		func(o *server.Options) { o.CallTimeout = 20 * time.Millisecond })
	for _, h2 := range []bool{false, true} {
		_, err := kvscoutv1connect.NewScoreServiceClient(client(t, h2), r.url("")).Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{}))
		if err == nil {
			t.Error("the call was not cut")
		}
	}
	if outcome.Load() == nil {
		t.Error("the handler's context did not end")
	}
	c := client(t, false)
	stats := kvscoutv1connect.NewIndexServiceClient(c, r.url(""))
	if _, err := stats.GetStats(t.Context(), connect.NewRequest(&kvscoutv1.GetStatsRequest{})); err != nil {
		t.Fatal(err)
	}
	s, err := stats.StreamStats(t.Context(), connect.NewRequest(&kvscoutv1.StreamStatsRequest{Interval: durationpb.New(15 * time.Millisecond)}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if !s.Receive() {
			t.Fatalf("answer %d: %v", i, s.Err())
		}
	}
	_ = s.Close()
}

// A slow sender does not hold a handler for ever.
func TestServe_SlowBodyIsCut(t *testing.T) {
	r := start(t, func(o *server.Options) { o.CallTimeout = 20 * time.Millisecond })
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	head := "POST " + scorePath + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
	if _, err := conn.Write([]byte(head)); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	for {
		if _, err := conn.Read(buf); err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				t.Error("the connection was kept")
			}
			return
		}
	}
}

// A panic costs its call only, and what was thrown stays out of answer and log.
func TestServe_Panic(t *testing.T) {
	r := start(t, scoring(func(context.Context) error { panic("secret of a request") }))
	c := client(t, false)
	_, err := kvscoutv1connect.NewScoreServiceClient(c, r.url("")).Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{}))
	if connect.CodeOf(err) != connect.CodeInternal || reason(err) != "INTERNAL" || strings.Contains(err.Error(), "secret") {
		t.Errorf("error = %v, reason %q", err, reason(err))
	}
	if text := r.log.String(); strings.Contains(text, "secret") || !strings.Contains(text, "panic in a handler") {
		t.Errorf("log:\n%s", text)
	}
	if _, err := kvscoutv1connect.NewIndexServiceClient(c, r.url("")).GetStats(t.Context(), connect.NewRequest(&kvscoutv1.GetStatsRequest{})); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// Case 119: the log tells method, code and reason, and nothing that a caller sent.
func TestServe_Case119_Log(t *testing.T) {
	r := start(t)
	c := kvscoutv1connect.NewScoreServiceClient(client(t, false), r.url(""))
	good := &kvscoutv1.ScoreRequest{Model: "m", Tokens: &kvscoutv1.Tokens{Ids: []int64{31337}}, CacheSalt: "salt-of-a-tenant", ExtraKey: "extra-of-a-tenant"}
	if _, err := c.Score(t.Context(), connect.NewRequest(good)); err != nil {
		t.Fatal(err)
	}
	bad := &kvscoutv1.ScoreRequest{Model: "model-nobody-serves", Tokens: good.GetTokens(), CacheSalt: good.GetCacheSalt()}
	if _, err := c.Score(t.Context(), connect.NewRequest(bad)); err == nil {
		t.Fatal("no error")
	}
	// The line of a call is written once its answer is out.
	eventually(t, func() bool { return strings.Contains(r.log.String(), "UNKNOWN_MODEL") })
	text := r.log.String()
	for _, want := range []string{"level=DEBUG msg=call method=" + scorePath + " code=ok", "level=INFO msg=call method=" + scorePath + " code=not_found reason=UNKNOWN_MODEL"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the log:\n%s", want, text)
		}
	}
	for _, secret := range []string{"31337", "tenant", "nobody"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in the log:\n%s", secret, text)
		}
	}
}

func TestServe_ListenerFails(t *testing.T) {
	l, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-serve(t, l, 64).done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("serve on a closed listener: %v", err)
	}
}

func TestHandler_OtherPaths(t *testing.T) {
	r := start(t)
	resp, err := client(t, false).Get(r.url("/metrics"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("status %d", resp.StatusCode)
	}
}
