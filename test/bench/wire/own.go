package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/bench"
)

// ownServer is kvscout serve, filled.
type ownServer struct {
	*bench.Server
	target bench.Target
	api    api
}

// api is both services.
type api struct {
	kvscoutv1connect.IndexServiceClient
	kvscoutv1connect.ScoreServiceClient
}

func startOwn(ctx context.Context, program string, w *bench.Workload) (*ownServer, error) {
	server, err := bench.StartServer(ctx, program, os.Stderr)
	if err != nil {
		return nil, err
	}
	s := &ownServer{
		Server: server,
		target: bench.Target{Network: "tcp", Address: strings.TrimPrefix(server.URL, "http://")},
		api: api{
			kvscoutv1connect.NewIndexServiceClient(http.DefaultClient, server.URL),
			kvscoutv1connect.NewScoreServiceClient(http.DefaultClient, server.URL),
		},
	}
	if err := w.Fill(ctx, s.api, nil); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *ownServer) name() string { return "kvscout" }

func (s *ownServer) pid() int { return s.PID() }

func (s *ownServer) callers(w *bench.Workload, c cell) ([]bench.Caller, func() error, error) {
	client := bench.Client{Protocol: bench.ProtocolConnect, Callers: c.callers, Connections: c.callers}
	switch c.kind {
	case leanJSON:
		client.Protocol = bench.ProtocolJSON
	case leanHashes:
		client.Form.Hashes = true
	case stock:
		client.Stock = true
	case grpcGo:
		client.Protocol, client.Stock, client.Connections = bench.ProtocolGRPC, true, 1
	}
	return w.Callers(s.target, client)
}
