package main

import (
	"github.com/kvscout/kvscout/events"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// workerSpec describes a worker to a server: src is its rank 0, and further ranks have ports that follow.
func workerSpec(src events.Source, ranks uint32) *kvscoutv1.WorkerSpec {
	spec := &kvscoutv1.WorkerSpec{
		WorkerId:       src.Worker,
		Model:          src.Model,
		Engine:         string(src.Engine),
		EngineVersion:  src.Version,
		BlockSize:      uint32(src.BlockSize),
		Ranks:          ranks,
		EventEndpoint:  src.Events,
		ReplayEndpoint: src.Replay,
		Topic:          src.Topic,
		PairKeys:       src.PairKeys,
		ReuseReports:   src.ReuseReports,
		HashFormat:     src.HashFormat,
	}
	if src.SpeculativeEAGLE {
		spec.Speculative = "eagle"
	}
	for _, h := range src.Unpublished {
		spec.Unpublished = append(spec.Unpublished, string(h))
	}
	return spec
}
