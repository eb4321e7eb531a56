package server_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"connectrpc.com/grpchealth"

	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/indexrpc"
	"github.com/kvscout/kvscout/indexer/ingest"
	"github.com/kvscout/kvscout/scorer/scorerpc"
	"github.com/kvscout/kvscout/scorer/server"
)

// A server that shuts down says NOT_SERVING of each service to whoever can still ask: here by a second HTTP server.
func TestHealth_NotServingOnceDraining(t *testing.T) {
	index := indexer.New(indexer.Options{})
	fleet := ingest.New(index, ingest.Options{})
	t.Cleanup(fleet.Close)
	srv := server.New(server.Options{Score: scorerpc.New(index, fleet, scorerpc.Options{}), Index: indexrpc.New(index, fleet, indexrpc.Options{})})
	l, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }() // ended by cancel, waited for below
	second := httptest.NewServer(srv.Handler())
	defer second.Close()
	h := grpchealth.NewClient(second.Client(), second.URL)
	says := func(name string, want grpchealth.Status) bool {
		got, err := h.Check(t.Context(), &grpchealth.CheckRequest{Service: name})
		return err == nil && got.Status == want
	}
	names := []string{"", "kvscout.v1.ScoreService", "kvscout.v1.IndexService"}
	for _, name := range names {
		eventually(t, func() bool { return says(name, grpchealth.StatusServing) })
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !says(name, grpchealth.StatusNotServing) {
			t.Errorf("%q is not NOT_SERVING", name)
		}
	}
}
