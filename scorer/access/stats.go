package access

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/indexrpc"
)

// Stats are the counters as Stats.access has them.
func (g *Guard) Stats() *kvscoutv1.AccessStats {
	out := &kvscoutv1.AccessStats{
		Calls:              uint64(max(0, g.crowd.calls[routing].Load()+g.crowd.calls[telling].Load())),
		MaxCalls:           uint64(max(0, g.opts.Limits.Calls)),
		Callers:            uint32(g.crowd.known.Len()), //nolint:gosec // at most maxRemembered
		Connections:        uint64(max(0, g.crowd.connections.Load())),
		RefusedConnections: g.connectionsRefused.Load(),
		FailedHandshakes:   g.handshakesFailed.Load(),
	}
	for reason := range indexrpc.ReasonCount {
		n := g.refused[reason].Load()
		if n == 0 {
			continue
		}
		if out.Refused == nil {
			out.Refused = make(map[string]uint64)
		}
		out.Refused[reason.String()] = n
	}
	for _, f := range g.files {
		out.Files = append(out.Files, f.stats())
	}
	if conf := g.keys.Load(); conf != nil {
		out.CertificateLeft = durationpb.New(time.Until(conf.Certificates[0].Leaf.NotAfter))
	}
	return out
}

func (f *secretFile) stats() *kvscoutv1.AccessFileStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &kvscoutv1.AccessFileStats{Name: f.name, Loads: f.loads, Failures: f.failures, Error: f.fault}
}
