package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/kvscout/kvscout/events/discover"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// firstWorkers is how long a server waits for discovery to name its workers before it answers calls.
const firstWorkers = 3 * time.Second

// discoverers are where the server's workers come from.
func (o *serveOptions) discoverers() []discover.Discoverer {
	first := discover.Discoverer(discover.Static{Called: "flags", List: o.workers})
	if o.config != "" {
		first = &discover.File{Path: o.config, Parse: o.parseWorkers, Poll: o.configPoll}
	}
	return append([]discover.Discoverer{first}, o.cluster...)
}

// parseWorkers reads the workers of the file again, as resolve does. The other settings of the file must be right too, but
// those that changed take effect with the next start.
func (o *serveOptions) parseWorkers(content []byte) ([]discover.Worker, error) {
	var fresh serveOptions
	flags := pflag.NewFlagSet("file", pflag.ContinueOnError)
	fresh.register(flags)
	list, err := readFile(flags, content)
	if err != nil {
		return nil, err
	}
	sources := fresh.sources
	if o.sourcesGiven {
		sources = o.sources
	}
	if list, err = assemble(list, sources); err != nil {
		return nil, err
	}
	return list, checkListen(o.listen, list)
}

// newAsker makes what asks workers, for discovery and for calls that name a worker by its URL.
func (o *serveOptions) newAsker() *discover.Asker {
	return discover.NewAsker(discover.AskerOptions{
		Policy: o.policy, Refresh: o.workerRefresh, Health: o.healthEvery, Grace: o.staleAfter,
	})
}

// discoverWorkers keeps the fleet as discovery says, from a goroutine of its own. It returns when discovery has named its
// first workers, or cannot do so soon. stop ends it and waits.
func discoverWorkers(ctx context.Context, o *serveOptions, asker *discover.Asker, fleet *ingest.Fleet, log *slog.Logger) (stop func()) {
	if len(o.workers) == 0 && len(o.cluster) == 0 {
		log.Info("no workers are configured; register some with RegisterWorker or kvscout workers add")
	}
	if o.kubernetes.used() {
		klog.SetSlogLogger(log) // client-go has a few words that go to its global logger
	}
	ctx, cancel := context.WithCancel(ctx)
	named := make(chan struct{})
	var once sync.Once
	apply := func(u discover.Update) {
		fleet.Discovered(u)
		once.Do(func() { close(named) })
	}
	var wg sync.WaitGroup
	wg.Go(func() { // ended by cancel; waited for by stop
		_ = discover.Run(ctx, discover.Options{
			Discoverers: []discover.Discoverer{fleet.Called()}, Asker: asker, Apply: fleet.Refreshed, Health: fleet.CalledHealth, Logger: log,
		})
	})
	wg.Go(func() { // likewise
		_ = discover.Run(ctx, discover.Options{
			Discoverers: o.discoverers(), Asker: asker, Apply: apply, Health: fleet.Health, Logger: log,
		}) // only ever ctx's error
	})
	timer := time.NewTimer(firstWorkers)
	defer timer.Stop()
	select {
	case <-named:
	case <-timer.C:
		log.Warn("discovery has named no workers yet")
	case <-ctx.Done():
	}
	return func() {
		cancel()
		wg.Wait()
	}
}
