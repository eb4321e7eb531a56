package indexrpc

import (
	"slices"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/ingest"
)

const (
	// maxRanks bounds the ranks of one spec before they are spread.
	maxRanks = 1024
	// maxText bounds every text of a spec, in bytes.
	maxText = 1024
	// maxBlockSize is far above what engines use, and keeps products of sizes in range.
	maxBlockSize = 1 << 20
	// speculativeEAGLE is the only value of WorkerSpec.speculative.
	speculativeEAGLE = "eagle"
)

func badWorkerf(format string, args ...any) error { return Failf(ReasonBadWorker, format, args...) }

// readWorker reads a spec. What it does not check, the fleet does. It errs with an *Error.
func readWorker(spec *kvscoutv1.WorkerSpec) (ingest.Worker, error) {
	if err := checkSpec(spec); err != nil {
		return ingest.Worker{}, err
	}
	role, err := RoleFrom(spec.GetRole())
	if err != nil {
		return ingest.Worker{}, badWorkerf("%w", err)
	}
	sources, err := readSource(spec).Ranks(int(max(1, spec.GetRanks())))
	if err != nil {
		return ingest.Worker{}, badWorkerf("%w", err)
	}
	return ingest.Worker{
		ID:       spec.GetWorkerId(),
		Labels:   spec.GetLabels(),
		Role:     role,
		Model:    spec.GetModel(),
		Aliases:  spec.GetModelAliases(),
		Adapters: spec.GetAdapters(), Fingerprint: spec.GetRenderFingerprint(),
		URL:     spec.GetUrl(),
		Sources: sources,
	}, nil
}

func checkSpec(spec *kvscoutv1.WorkerSpec) error {
	switch {
	case spec == nil:
		return badWorkerf("worker is missing")
	case spec.GetWorkerId() == "":
		return badWorkerf("worker_id is missing")
	case spec.GetModel() == "" && !asks(spec):
		return badWorkerf("model is missing")
	case spec.GetRanks() > 0 && asks(spec) && spec.GetEventEndpoint() == "":
		return badWorkerf("ranks without event_endpoint; a worker that is asked tells its own")
	case spec.GetRanks() > maxRanks:
		return badWorkerf("%d ranks, limit %d", spec.GetRanks(), maxRanks)
	case spec.GetBlockSize() > maxBlockSize:
		return badWorkerf("block size %d, limit %d", spec.GetBlockSize(), maxBlockSize)
	case spec.GetSpeculative() != "" && spec.GetSpeculative() != speculativeEAGLE:
		return badWorkerf("speculative %.100q is not eagle", spec.GetSpeculative())
	case spec.GetReplayEndpoint() != "" && spec.GetEventEndpoint() == "":
		return badWorkerf("replay_endpoint without event_endpoint")
	case slices.Contains(spec.GetModelAliases(), ""):
		return badWorkerf("an alias is empty")
	case slices.Contains(spec.GetAdapters(), ""):
		return badWorkerf("the name of an adapter is empty")
	}
	if url := spec.GetUrl(); url != "" {
		if err := discover.CheckURL(url); err != nil {
			return badWorkerf("%w", err)
		}
	}
	return checkTexts(spec)
}

// checkTexts bounds what the fleet would keep for as long as the worker stays.
func checkTexts(spec *kvscoutv1.WorkerSpec) error {
	texts := []string{
		spec.GetWorkerId(), spec.GetModel(), spec.GetEngine(), spec.GetEngineVersion(), spec.GetEventEndpoint(),
		spec.GetReplayEndpoint(), spec.GetTopic(), spec.GetHashFormat(), spec.GetRenderFingerprint(), spec.GetUrl(),
	}
	texts = slices.Concat(texts, spec.GetModelAliases(), spec.GetAdapters(), spec.GetUnpublished())
	for key, value := range spec.GetLabels() {
		texts = append(texts, key, value)
	}
	for _, text := range texts {
		if len(text) > maxText {
			return badWorkerf("a text of %d bytes, limit %d", len(text), maxText)
		}
	}
	if n := len(spec.GetUnpublished()); n > 3 {
		return badWorkerf("unpublished names %d things, there are 3", n)
	}
	return nil
}

func readSource(spec *kvscoutv1.WorkerSpec) events.Source {
	src := events.Source{
		Worker:           spec.GetWorkerId(),
		Engine:           events.Engine(spec.GetEngine()),
		Version:          spec.GetEngineVersion(),
		Model:            spec.GetModel(),
		BlockSize:        int(spec.GetBlockSize()),
		Events:           spec.GetEventEndpoint(),
		Replay:           spec.GetReplayEndpoint(),
		Topic:            spec.GetTopic(),
		SpeculativeEAGLE: spec.GetSpeculative() == speculativeEAGLE,
		PairKeys:         spec.GetPairKeys(),
		ReuseReports:     spec.GetReuseReports(),
		HashFormat:       spec.GetHashFormat(),
	}
	for _, h := range spec.GetUnpublished() {
		src.Unpublished = append(src.Unpublished, events.Hidden(h))
	}
	return src
}

// named says whether the worker serves the model or alias; any does for "".
func named(w ingest.Worker, model string) bool {
	return model == "" || w.Model == model || slices.Contains(w.Aliases, model)
}

// workerOf is a worker with the state of its sources, as of now.
func workerOf(w ingest.Worker, ledgers []*indexer.Ledger, now time.Time) *kvscoutv1.Worker {
	out := &kvscoutv1.Worker{Spec: specOf(w), Url: w.URL, RenderFingerprint: w.Fingerprint}
	for _, l := range ledgers {
		out.Sources = append(out.Sources, statusOf(w, l, now))
	}
	return out
}

func specOf(w ingest.Worker) *kvscoutv1.WorkerSpec {
	spec := &kvscoutv1.WorkerSpec{
		WorkerId:     w.ID,
		Labels:       w.Labels,
		Role:         RoleOf(w.Role),
		Model:        w.Model,
		ModelAliases: w.Aliases,
		Adapters:     w.Adapters,
		Url:          w.URL,
		Ranks:        Count(len(w.Sources)),

		RenderFingerprint: w.Fingerprint,
	}
	if len(w.Sources) == 0 {
		return spec
	}
	src := w.Sources[0]
	spec.Engine, spec.EngineVersion = string(src.Engine), src.Version
	spec.BlockSize = Count(src.BlockSize)
	spec.EventEndpoint, spec.ReplayEndpoint, spec.Topic = src.Events, src.Replay, src.Topic
	spec.PairKeys, spec.ReuseReports, spec.HashFormat = src.PairKeys, src.ReuseReports, src.HashFormat
	if src.SpeculativeEAGLE {
		spec.Speculative = speculativeEAGLE
	}
	for _, h := range src.Unpublished {
		spec.Unpublished = append(spec.Unpublished, string(h))
	}
	return spec
}

func statusOf(w ingest.Worker, l *indexer.Ledger, now time.Time) *kvscoutv1.SourceStatus {
	fresh := l.Freshness()
	out := &kvscoutv1.SourceStatus{
		Rank:            Count(l.Source().Rank),
		Freshness:       FreshnessOf(fresh, now),
		Error:           fresh.Why,
		HistoryComplete: l.HistoryComplete(),
	}
	// A rank that only the batches of another one name has no endpoint of its own.
	if src, ok := ofRank(w, l.Source().Rank); ok {
		out.EventEndpoint, out.ReplayEndpoint = src.Events, src.Replay
	}
	for _, size := range l.BlockSizes() {
		out.BlockSizes = append(out.BlockSizes, Count(size))
	}
	return out
}
