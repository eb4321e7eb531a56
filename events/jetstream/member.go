package jetstream

import (
	"encoding/json"
	"fmt"

	"github.com/kvscout/kvscout/events"
)

// Member describes a worker to replicas.
type Member struct {
	ID string `json:"id"`
	// Role is prefill, decode, both, or empty if not stated.
	Role   string            `json:"role,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Model is the served model name, Aliases its other names, Adapters the LoRA adapters that it serves.
	Model    string   `json:"model,omitempty"`
	Aliases  []string `json:"aliases,omitempty"`
	Adapters []string `json:"adapters,omitempty"`
	// Fingerprint is that of its rendering, if known.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Sources has one entry for each rank. Where the ingester listens is not told: a replica must not listen there.
	Sources []Source `json:"sources"`
}

// Source is what a replica has to know of an events.Source.
type Source struct {
	Rank             int             `json:"rank,omitempty"`
	Engine           events.Engine   `json:"engine"`
	Version          string          `json:"version,omitempty"`
	BlockSize        int             `json:"block_size,omitempty"`
	SpeculativeEAGLE bool            `json:"speculative_eagle,omitempty"`
	PairKeys         bool            `json:"pair_keys,omitempty"`
	ReuseReports     bool            `json:"reuse_reports,omitempty"`
	HashFormat       string          `json:"hash_format,omitempty"`
	Unpublished      []events.Hidden `json:"unpublished,omitempty"`
}

// SourceOf is what replicas are told of s.
func SourceOf(s events.Source) Source {
	return Source{
		Rank: s.Rank, Engine: s.Engine, Version: s.Version, BlockSize: s.BlockSize, SpeculativeEAGLE: s.SpeculativeEAGLE,
		PairKeys: s.PairKeys, ReuseReports: s.ReuseReports, HashFormat: s.HashFormat, Unpublished: s.Unpublished,
	}
}

// Events is the member's sources as a replica opens them: without endpoints.
func (m Member) Events() []events.Source {
	out := make([]events.Source, len(m.Sources))
	for i, s := range m.Sources {
		out[i] = events.Source{
			Worker: m.ID, Rank: s.Rank, Engine: s.Engine, Version: s.Version, Model: m.Model, BlockSize: s.BlockSize,
			SpeculativeEAGLE: s.SpeculativeEAGLE, PairKeys: s.PairKeys, ReuseReports: s.ReuseReports,
			HashFormat: s.HashFormat, Unpublished: s.Unpublished,
		}
	}
	return out
}

// maxMemberBytes bounds the JSON of a Member.
const maxMemberBytes = 1 << 20

// parseMember reads the description of worker id. It errs with ErrRecord.
func parseMember(id string, body []byte) (Member, error) {
	if len(body) > maxMemberBytes {
		return Member{}, fmt.Errorf("%w: a worker's description of %d bytes, limit %d", ErrRecord, len(body), maxMemberBytes)
	}
	var m Member
	if err := json.Unmarshal(body, &m); err != nil {
		return Member{}, fmt.Errorf("%w: a worker's description: %v", ErrRecord, err)
	}
	if m.ID != id {
		return Member{}, fmt.Errorf("%w: worker %.100q is described as %.100q", ErrRecord, id, m.ID)
	}
	return m, nil
}
