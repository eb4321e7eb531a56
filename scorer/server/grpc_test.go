package server_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
)

// dial connects with grpc-go, the client that gateways have.
func dial(t testing.TB, r *rig) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+r.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestGRPC_Score(t *testing.T) {
	conn := dial(t, startLarge(t))
	out := new(kvscoutv1.ScoreResponse)
	req := &kvscoutv1.ScoreRequest{Model: "m", Tokens: &kvscoutv1.Tokens{Packed: packed(65536)}}
	if err := conn.Invoke(t.Context(), kvscoutv1connect.ScoreServiceScoreProcedure, req, out); err != nil {
		t.Fatal(err)
	}
	if w := out.GetWorkers()[0]; w.GetHeldTokens() != 65536 || w.GetScore() != 1 {
		t.Errorf("best = %v", w)
	}
}

func TestGRPC_ErrorDetails(t *testing.T) {
	conn := dial(t, start(t))
	req := &kvscoutv1.ScoreRequest{Model: "x", Tokens: &kvscoutv1.Tokens{Ids: []int64{1}}}
	err := conn.Invoke(t.Context(), kvscoutv1connect.ScoreServiceScoreProcedure, req, new(kvscoutv1.ScoreResponse))
	st := status.Convert(err)
	if st.Code() != codes.NotFound || len(st.Details()) != 1 {
		t.Fatalf("error = %v with %v", err, st.Details())
	}
	if info, ok := st.Details()[0].(*errdetails.ErrorInfo); !ok || info.GetReason() != "UNKNOWN_MODEL" || info.GetDomain() != "kvscout" {
		t.Errorf("detail = %v", st.Details()[0])
	}
}

func TestGRPC_Health(t *testing.T) {
	r := start(t)
	h := healthv1.NewHealthClient(dial(t, r))
	for _, name := range []string{"", "kvscout.v1.ScoreService", "kvscout.v1.IndexService"} {
		resp, err := h.Check(t.Context(), &healthv1.HealthCheckRequest{Service: name})
		if err != nil || resp.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v", name, resp, err)
		}
	}
	if _, err := h.Check(t.Context(), &healthv1.HealthCheckRequest{Service: "x"}); status.Code(err) != codes.NotFound {
		t.Errorf("health of an unknown service: %v", err)
	}
	// A watch does not hold a shutdown up.
	watch, err := h.Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := watch.Recv(); err != nil || first.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("first: %v, %v", first, err)
	}
	r.stop()
	for err == nil {
		_, err = watch.Recv()
	}
	if err := <-r.done; err != nil {
		t.Errorf("serve: %v", err)
	}
}

func TestGRPC_Reflection(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := reflectionv1.NewServerReflectionClient(dial(t, start(t))).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(req *reflectionv1.ServerReflectionRequest) *reflectionv1.ServerReflectionResponse {
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	var names []string
	list := ask(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
	for _, s := range list.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	slices.Sort(names)
	if want := []string{"grpc.health.v1.Health", "kvscout.v1.IndexService", "kvscout.v1.ScoreService"}; !slices.Equal(names, want) {
		t.Errorf("services = %v, want %v", names, want)
	}
	file := ask(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{
		FileContainingSymbol: "kvscout.v1.ScoreRequest"}})
	if len(file.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
		t.Errorf("descriptor = %v", file)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("end = %v", err)
	}
}
