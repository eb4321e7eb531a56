package server

import (
	"context"

	"connectrpc.com/grpchealth"

	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
)

// health is the state of each service. Rendering has one of its own: scores of token ids need no renderer, so a dead
// renderer takes nothing from the other services.
type health struct {
	*grpchealth.StaticChecker
	renders func() bool
}

func newHealth(opts Options) *health {
	if opts.RenderReady == nil {
		opts.RenderReady = func() bool { return true }
	}
	return &health{StaticChecker: grpchealth.NewStaticChecker(opts.services()...), renders: opts.RenderReady}
}

// Check is the state of one service, or with an empty name of the server.
func (h *health) Check(ctx context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	out, err := h.StaticChecker.Check(ctx, req)
	if err == nil && req.Service == kvscoutv1connect.RenderServiceName && !h.renders() {
		out.Status = grpchealth.StatusNotServing
	}
	return out, err
}
