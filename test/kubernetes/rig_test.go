//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kvscout/kvscout/events/discover"
	"github.com/kvscout/kvscout/events/discover/kubernetes"
)

// rig is a running discovery.
type rig struct {
	*testing.T
	mu     sync.Mutex // guards all below
	change *sync.Cond
	last   discover.Update
	ill    map[string]error
	stop   func()
}

// discoverBy runs discovery by one resource and selector. also, if not nil, takes all that is told, too.
func discoverBy(t *testing.T, o kubernetes.Options, also func(discover.Update), health func(string, error)) *rig {
	t.Helper()
	d, err := kubernetes.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, ill: make(map[string]error)}
	r.change = sync.NewCond(&r.mu)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { // ended by stop, which waits
		done <- discover.Run(ctx, discover.Options{
			Discoverers: []discover.Discoverer{d},
			Apply: func(u discover.Update) {
				if also != nil {
					also(u)
				}
				r.locked(func() { r.last = u })
			},
			Health: func(w string, err error) {
				if health != nil {
					health(w, err)
				}
				r.locked(func() { r.ill[w] = err })
			},
		})
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func byPods(config *rest.Config) kubernetes.Options {
	return kubernetes.Options{Config: config, Namespace: "default", Resource: kubernetes.Pods, Selector: "app=engine"}
}

func bySlices(config *rest.Config) kubernetes.Options {
	return kubernetes.Options{Config: config, Namespace: "default", Resource: kubernetes.EndpointSlices, Selector: "kubernetes.io/service-name=engines"}
}

func (r *rig) locked(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	r.change.Broadcast()
}

// wait blocks until done, called under the lock, reports true.
func (r *rig) wait(what string, done func() bool) {
	r.Helper()
	late := false
	timer := time.AfterFunc(patience, func() { r.locked(func() { late = true }) })
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !done() {
		if late {
			r.Fatalf("waited in vain for %s: %+v, ill %v", what, r.last, r.ill)
		}
		r.change.Wait()
	}
}

// ids are those of the workers that can be listened to, in order. The caller holds the lock.
func (r *rig) ids() string {
	var out []string
	for _, w := range r.last.Workers {
		out = append(out, w.ID)
	}
	return strings.Join(out, " ")
}

// waitIDs blocks until the workers are these.
func (r *rig) waitIDs(want string) {
	r.Helper()
	r.wait("workers "+want, func() bool { return r.ids() == want })
}

// status is that of the one discoverer. The caller holds the lock.
func (r *rig) status() (s discover.Status) {
	if len(r.last.Discoverers) == 1 {
		s = r.last.Discoverers[0]
	}
	return s
}

// now is the status now.
func (r *rig) now() (s discover.Status) {
	r.locked(func() { s = r.status() })
	return s
}

// find is worker for a caller that holds no lock.
func (r *rig) find(id string) (w discover.Worker) {
	r.locked(func() { w = r.worker(id) })
	return w
}

// listed is ids for a caller that holds no lock.
func (r *rig) listed() (ids string) {
	r.locked(func() { ids = r.ids() })
	return ids
}

// worker is one that can be listened to. The caller holds the lock.
func (r *rig) worker(id string) (w discover.Worker) {
	for _, o := range r.last.Workers {
		if o.ID == id {
			w = o
		}
	}
	return w
}
