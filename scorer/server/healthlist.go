package server

import (
	"context"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// list is the health of every service, and under an empty name of the server: the method that grpchealth lacks.
func (h *health) list(services []string) func(context.Context, *connect.Request[healthpb.HealthListRequest]) (*connect.Response[healthpb.HealthListResponse], error) {
	return func(ctx context.Context, _ *connect.Request[healthpb.HealthListRequest]) (*connect.Response[healthpb.HealthListResponse], error) {
		out := &healthpb.HealthListResponse{Statuses: make(map[string]*healthpb.HealthCheckResponse, len(services)+1)}
		for _, name := range append([]string{""}, services...) {
			status, err := h.Check(ctx, &grpchealth.CheckRequest{Service: name})
			if err != nil {
				return nil, err
			}
			out.Statuses[name] = &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_ServingStatus(status.Status)}
		}
		return connect.NewResponse(out), nil
	}
}
