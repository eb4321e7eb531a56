package indexrpc

import (
	"testing"

	"connectrpc.com/connect"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/ingest"
)

func TestGate(t *testing.T) {
	g := NewGate(2)
	for i, want := range []bool{true, true, false} {
		if got := g.Enter(); got != want {
			t.Errorf("call %d entered a gate of 2: %v", i, got)
		}
	}
	g.Leave()
	if !g.Enter() {
		t.Error("no room after one left")
	}
}

// Rule 17: a push over the bound gets a typed error at once, and nothing of it is applied.
func TestRule17_PublishOverloaded(t *testing.T) {
	index := indexer.New(indexer.Options{})
	fleet := ingest.New(index, ingest.Options{})
	defer fleet.Close()
	s := New(index, fleet, Options{MaxPublishes: 1})
	s.publishes.Enter()
	req := connect.NewRequest(&kvscoutv1.PublishRequest{WorkerId: "w0"})
	if _, err := s.Publish(t.Context(), req); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("full: %v", err)
	}
	s.publishes.Leave()
	if _, err := s.Publish(t.Context(), req); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("with room: %v", err)
	}
}
