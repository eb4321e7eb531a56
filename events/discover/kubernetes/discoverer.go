package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kvscout/kvscout/events/discover"
)

// ErrOptions is a setting that cannot be used.
var ErrOptions = errors.New("bad kubernetes setting")

// Resource is what workers are found by.
type Resource string

// The resources that name workers.
const (
	Pods           Resource = "pods"
	EndpointSlices Resource = "endpointslices"
)

// Forms of a worker's id.
const (
	// IDAddress is address:port of the worker's serving port.
	IDAddress = "address"
	// IDName is the name of its pod.
	IDName = "name"
)

// DefaultPort is the name of the serving port.
const DefaultPort = "http"

const (
	// settle is the least time between two reports: many changes at once are one.
	settle = 50 * time.Millisecond
	// backoffLeast and backoffMost bound the pause before a failed list or watch is tried again.
	backoffLeast, backoffMost = 500 * time.Millisecond, 10 * time.Second
)

// Options of a Discoverer.
type Options struct {
	// Config says how the API server is reached; see Config.
	Config *rest.Config
	// Namespace of the workers.
	Namespace string
	// Resource is Pods or EndpointSlices.
	Resource Resource
	// Selector selects by label, as "app=vllm" or "kubernetes.io/service-name=vllm".
	Selector string
	// Port is the name or the number of the serving port, "" for DefaultPort. An object that has no port of that name and
	// only one port means that. The annotation kvscout.io/port goes first.
	Port string
	// ID is IDAddress or IDName, "" for IDAddress.
	ID string
	// Policy says which addresses workers may have.
	Policy discover.Policy
}

// Discoverer is a discover.Discoverer. It may run once at a time.
type Discoverer struct {
	o        Options
	selector string
}

// New returns a Discoverer. It errs with ErrOptions.
func New(o Options) (*Discoverer, error) {
	if o.Port == "" {
		o.Port = DefaultPort
	}
	if o.ID == "" {
		o.ID = IDAddress
	}
	var faults []error
	bad := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...))
	}
	selector, err := labels.Parse(o.Selector)
	switch {
	case err != nil:
		bad("selector %q: %v", o.Selector, err)
	case selector.Empty():
		bad("selector is empty, which would take every object of the namespace")
	}
	if o.Config == nil {
		bad("no API server is configured")
	}
	if why := validation.IsDNS1123Label(o.Namespace); len(why) > 0 {
		bad("namespace %q: %s", o.Namespace, why[0])
	}
	if o.Resource != Pods && o.Resource != EndpointSlices {
		bad("resource %q is not %s or %s", o.Resource, Pods, EndpointSlices)
	}
	if _, _, err := parsePort(o.Port); err != nil {
		bad("port: %v", err)
	}
	if o.ID != IDAddress && o.ID != IDName {
		bad("id %q is not %s or %s", o.ID, IDAddress, IDName)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return &Discoverer{o: o, selector: selector.String()}, nil
}

// Name implements discover.Discoverer.
func (d *Discoverer) Name() string { return "kubernetes-" + string(d.o.Resource) }

// Run implements discover.Discoverer.
func (d *Discoverer) Run(ctx context.Context, r discover.Reporter) error {
	client, stop, err := newClient(d.o.Config, d.o.Resource)
	if err != nil {
		return fmt.Errorf("%s: %w", d.Name(), err)
	}
	defer stop()
	s := newStore(translator{port: d.o.Port, id: d.o.ID, policy: d.o.Policy})
	w := &watcher{client: client, o: d.o, selector: d.selector, store: s}
	quiet := logr.Discard() // every failure of it is told by the watcher; it goes by the context, too
	reflector := cache.NewReflectorWithOptions(w, w.object(), s, cache.ReflectorOptions{
		Name: d.Name(), Logger: &quiet,
		Backoff: &wait.Backoff{Duration: backoffLeast, Cap: backoffMost, Factor: 2, Jitter: 0.5, Steps: 8},
	})
	reflector.WatchListPageSize = pageSize
	var wg sync.WaitGroup
	defer w.wait()
	defer wg.Wait()
	wg.Go(func() { reflector.RunWithContext(klog.NewContext(ctx, quiet)) }) // ends with ctx; waited for above
	return report(ctx, s, r)
}

// report tells what the store holds whenever that changes, until ctx ends.
func report(ctx context.Context, s *store, r discover.Reporter) error {
	told := ""
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.changed:
		}
		state := s.take()
		if state.news {
			r.Workers(state.workers)
			told = ""
		}
		if err := state.err; err != nil && err.Error() != told { // a report has wiped what was told before it
			told = err.Error()
			r.Failed(err)
		}
		timer := time.NewTimer(settle)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}
