package main

import (
	"errors"
	"fmt"
	"net"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// parseSources reads --source values.
func parseSources(specs []string) ([]events.Source, error) {
	var out []events.Source
	var faults []error
	for _, spec := range specs {
		s, err := events.ParseSource(spec)
		if err != nil {
			faults = append(faults, fmt.Errorf("source %q: %w", spec, err))
			continue
		}
		out = append(out, s)
	}
	return out, errors.Join(faults...)
}

// assemble makes the workers of a server from the file's and those of --source, and reports everything wrong with them.
func assemble(fromFile []discover.Worker, specs []string) ([]discover.Worker, error) {
	sources, err := parseSources(specs)
	if err != nil {
		return nil, err
	}
	workers, err := ingest.Group(sources)
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, g := range workers {
		w := discover.Worker{ID: g.ID, Model: g.Model, Sources: g.Sources}
		if fromFile, err = addWorker(fromFile, w); err != nil {
			faults = append(faults, fmt.Errorf("worker %q: %w", w.ID, err))
		}
	}
	var all []events.Source
	for _, w := range fromFile {
		all = append(all, w.Sources...)
		if w.Model == "" && w.URL == "" {
			faults = append(faults, fmt.Errorf("worker %q: model is missing", w.ID))
		}
	}
	return fromFile, errors.Join(append(faults, checkEndpoints(all))...)
}

// checkListen refuses event endpoints that are to be bound on the port of the server itself.
func checkListen(listen string, workers []discover.Worker) error {
	_, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return nil // a socket, a port that is free, or an address that Listen will refuse
	}
	var faults []error
	for _, w := range workers {
		for _, s := range w.Sources {
			e, err := events.ParseEndpoint(s.Events)
			if err != nil || !e.Bind {
				continue
			}
			if _, bound, _ := net.SplitHostPort(e.Address); bound == port {
				faults = append(faults, fmt.Errorf("endpoint %s is events of %s and the server's own port", s.Events, s.ID()))
			}
		}
	}
	return errors.Join(faults...)
}

// checkEndpoints refuses endpoints that two sources, or events and replay of one, would share (case 150). Events of two
// sources may share one if their topics differ.
func checkEndpoints(sources []events.Source) error {
	type user struct{ source, use, topic string }
	users := make(map[events.Endpoint][]user)
	var faults []error
	add := func(endpoint string, u user) {
		if endpoint == "" {
			return
		}
		e, err := events.Endpoint{Network: "http", Address: endpoint}, error(nil)
		if !(events.Source{Events: endpoint}).Polled() {
			e, err = events.ParseEndpoint(endpoint)
		}
		if err != nil {
			faults = append(faults, err)
			return
		}
		for _, other := range users[e] {
			if u.use == "replay" || other.use == "replay" || u.topic == other.topic {
				faults = append(faults, fmt.Errorf("endpoint %s is %s of %s and %s of %s", endpoint, other.use, other.source, u.use, u.source))
			}
		}
		users[e] = append(users[e], u)
	}
	for _, s := range sources {
		add(s.Events, user{s.ID(), "events", s.Topic})
		add(s.Replay, user{s.ID(), "replay", ""})
	}
	return errors.Join(faults...)
}
