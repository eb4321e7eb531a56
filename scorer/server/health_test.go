package server_test

import (
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/scorerpc"
	"github.com/kvscout/kvscout/scorer/server"
)

const (
	serving    = healthv1.HealthCheckResponse_SERVING
	notServing = healthv1.HealthCheckResponse_NOT_SERVING
)

func health(t *testing.T, h healthv1.HealthClient, service string) healthv1.HealthCheckResponse_ServingStatus {
	t.Helper()
	resp, err := h.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetStatus()
}

// Until the index has what it starts with, health says so of scores and of the whole; workers can be registered.
func TestHealth_NotServingUntilReady(t *testing.T) {
	ready := make(chan struct{})
	drained := make(chan struct{})
	r := start(t, func(o *server.Options) {
		o.Ready = func(stop <-chan struct{}) bool {
			select {
			case <-ready:
				return true
			case <-stop:
				return false
			}
		}
		o.Drain = func() { close(drained) }
	})
	h := healthv1.NewHealthClient(dial(t, r))
	eventually(t, func() bool { return health(t, h, "kvscout.v1.IndexService") == serving })
	for _, name := range []string{"", "kvscout.v1.ScoreService"} {
		if got := health(t, h, name); got != notServing {
			t.Errorf("%q is %v before it is ready", name, got)
		}
	}
	close(ready)
	for _, name := range []string{"", "kvscout.v1.ScoreService", "kvscout.v1.IndexService"} {
		eventually(t, func() bool { return health(t, h, name) == serving })
	}
	r.stop()
	if err := <-r.done; err != nil {
		t.Errorf("serve: %v", err)
	}
	<-drained
}

// Who watches a service hears its state at once and of each change, of a renderer's too, until the server ends.
func TestHealth_Watch(t *testing.T) {
	ready := make(chan struct{})
	var renders atomic.Bool
	r := start(t, func(o *server.Options) {
		o.Render = scorerpc.New(nil, nil, scorerpc.Options{})
		o.RenderReady = renders.Load
		o.Ready = func(stop <-chan struct{}) bool {
			select {
			case <-ready:
				return true
			case <-stop:
				return false
			}
		}
	})
	h := healthv1.NewHealthClient(dial(t, r))
	next := make(map[string]func() healthv1.HealthCheckResponse_ServingStatus)
	for _, name := range []string{"", "kvscout.v1.ScoreService", "kvscout.v1.RenderService"} {
		stream, err := h.Watch(t.Context(), &healthv1.HealthCheckRequest{Service: name})
		if err != nil {
			t.Fatal(err)
		}
		next[name] = func() healthv1.HealthCheckResponse_ServingStatus {
			resp, err := stream.Recv()
			if err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			return resp.GetStatus()
		}
		if got := next[name](); got != notServing {
			t.Errorf("%q is %v before it is ready", name, got)
		}
	}
	close(ready)
	for _, name := range []string{"", "kvscout.v1.ScoreService"} {
		if got := next[name](); got != serving {
			t.Errorf("%q is %v when it is ready", name, got)
		}
	}
	renders.Store(true)
	if got := next["kvscout.v1.RenderService"](); got != serving {
		t.Errorf("rendering is %v", got)
	}
	renders.Store(false)
	if got := next["kvscout.v1.RenderService"](); got != notServing {
		t.Errorf("rendering is %v though the renderer is gone", got)
	}
	stream, err := h.Watch(t.Context(), &healthv1.HealthCheckRequest{Service: "nobody"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.NotFound {
		t.Errorf("nobody's health: %v", err)
	}
	r.stop()
	if err := <-r.done; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// A shutdown does not wait for what is waited for.
func TestHealth_StopsBeforeReady(t *testing.T) {
	r := start(t, func(o *server.Options) {
		o.Ready = func(stop <-chan struct{}) bool { <-stop; return false }
	})
	r.stop()
	if err := <-r.done; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// When the server shuts down a stream of scores ends with NOT_READY, though its caller would go on: after the answers to
// what it had sent.
func TestServe_EndsScoreStreams(t *testing.T) {
	r := start(t)
	c := kvscoutv1connect.NewScoreServiceClient(client(t, true), r.url(""), connect.WithGRPC())
	stream := c.ScoreStream(t.Context())
	for i := range 3 {
		if err := stream.Send(&kvscoutv1.ScoreStreamRequest{Request: &kvscoutv1.ScoreRequest{Tokens: &kvscoutv1.Tokens{Ids: []int64{1}}}}); err != nil {
			t.Fatal(err)
		}
		if resp, err := stream.Receive(); err != nil || resp.GetResult().GetResponse().GetPromptTokens() != 1 {
			t.Fatalf("answer %d: %v, %v", i, resp, err)
		}
	}
	r.stop()
	_, err := stream.Receive()
	if connect.CodeOf(err) != connect.CodeUnavailable || reason(err) != "NOT_READY" {
		t.Errorf("the stream ended with %v, reason %q", err, reason(err))
	}
	_ = stream.CloseRequest()
	_ = stream.CloseResponse()
	if err := <-r.done; err != nil {
		t.Errorf("serve: %v", err)
	}
}
