package main

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// workerEntry is one entry of "workers" in the file of --config.
type workerEntry struct {
	id, url             string
	role, model         string
	labels              map[string]string
	aliases, adapters   []string
	engine, version     string
	blockSize           int
	rank, ranks         int
	events, replay      string
	topic, speculative  string
	eagle, reuseReports bool
	hashFormat          string
	unpublished         []string
	fingerprint         string
}

// fields are the keys of an entry and where their values go.
func (e *workerEntry) fields() map[string]any {
	return map[string]any{
		"id": &e.id, "url": &e.url, "role": &e.role, "labels": &e.labels, "model": &e.model, "aliases": &e.aliases,
		"adapters": &e.adapters,
		"engine":   &e.engine, "version": &e.version, "block_size": &e.blockSize, "rank": &e.rank, "ranks": &e.ranks,
		"events": &e.events, "replay": &e.replay, "topic": &e.topic, "speculative": &e.speculative, "eagle": &e.eagle,
		"reuse_reports": &e.reuseReports, "hash_format": &e.hashFormat, "unpublished": &e.unpublished,
		"render_fingerprint": &e.fingerprint,
	}
}

// readWorkers reads the list of workers. Entries of one id are ranks of one worker, each with endpoints of its own.
func readWorkers(list *yaml.Node) ([]discover.Worker, error) {
	if list.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("want a list, got %s", nodeKind(list))
	}
	var out []discover.Worker
	var faults []error
	for _, node := range list.Content {
		w, err := readWorker(node)
		if err == nil {
			out, err = addWorker(out, w)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: worker %q: %w", node.Line, w.ID, err))
		}
	}
	return out, errors.Join(faults...)
}

func readWorker(node *yaml.Node) (discover.Worker, error) {
	var e workerEntry
	fields := e.fields()
	err := eachKey(node, func(key string, value *yaml.Node) error {
		target, ok := fields[key]
		if !ok {
			return errors.New("unknown key of a worker")
		}
		return value.Decode(target)
	})
	if err != nil {
		return discover.Worker{ID: e.id}, err
	}
	return e.worker()
}

// worker makes the worker of an entry.
func (e *workerEntry) worker() (discover.Worker, error) {
	w := discover.Worker{ID: e.id, URL: e.url, Role: e.role, Labels: e.labels, Model: e.model, Aliases: e.aliases, Adapters: e.adapters, Fingerprint: e.fingerprint}
	if _, ok := ingest.ParseRole(e.role); !ok {
		return w, fmt.Errorf("role %q is not prefill, decode or both", e.role)
	}
	if e.speculative != "" && e.speculative != "eagle" {
		return w, fmt.Errorf("speculative %q, only eagle is known", e.speculative)
	}
	if e.ranks < 0 {
		return w, fmt.Errorf("ranks %d is negative", e.ranks)
	}
	src := events.Source{
		Worker: e.id, Rank: e.rank, Engine: events.Engine(e.engine), Version: e.version, Model: e.model,
		BlockSize: e.blockSize, Events: e.events, Replay: e.replay, Topic: e.topic,
		SpeculativeEAGLE: e.speculative != "", PairKeys: e.eagle, ReuseReports: e.reuseReports, HashFormat: e.hashFormat,
	}
	for _, h := range e.unpublished {
		src.Unpublished = append(src.Unpublished, events.Hidden(h))
	}
	if err := e.check(src); err != nil {
		return w, err
	}
	if e.ranks > maxRanks {
		return w, fmt.Errorf("ranks %d, at most %d", e.ranks, maxRanks)
	}
	var err error
	w.Sources, err = src.Ranks(e.ranks)
	return w, err
}

// check looks at a source of the entry. What a worker can be asked for may be missing.
func (e *workerEntry) check(src events.Source) error {
	if e.url == "" {
		return src.Validate()
	}
	if err := discover.CheckURL(e.url); err != nil {
		return err
	}
	if e.events == "" && (e.rank > 0 || e.ranks > 0 || e.replay != "") {
		return errors.New("rank, ranks and replay belong to events; a worker that is asked tells its own")
	}
	if src.Engine == "" {
		src.Engine = events.EngineVLLM // any: the worker tells
	}
	return src.Validate()
}

// maxRanks is what a fleet takes for one worker.
const maxRanks = 1024

// addWorker adds w, or its ranks to the worker of the same id.
func addWorker(list []discover.Worker, w discover.Worker) ([]discover.Worker, error) {
	for i := range list {
		have := &list[i]
		if have.ID != w.ID {
			continue
		}
		if have.Model != w.Model {
			return list, fmt.Errorf("serves %q and %q", have.Model, w.Model)
		}
		if w.Role != "" || w.URL != "" || len(w.Labels) > 0 || len(w.Aliases)+len(w.Adapters) > 0 {
			return list, errors.New("is listed already; url, role, labels, aliases and adapters belong to its first entry")
		}
		have.Sources = append(have.Sources, w.Sources...)
		return list, nil
	}
	return append(list, w), nil
}
