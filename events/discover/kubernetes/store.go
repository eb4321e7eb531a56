package kubernetes

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvscout/kvscout/events/discover"
)

// store keeps the workers of each object that the Reflector brings, not the objects. It is a cache.ReflectorStore.
type store struct {
	t translator
	// changed has one element while there is something to take.
	changed chan struct{}

	mu      sync.Mutex       // guards all below
	entries map[string]entry // by name: there is one namespace
	synced  bool             // a whole list came
	news    bool             // workers or their freshness changed since take
	failure error            // of the last list or watch, nil if it worked
}

// entry is what one object says.
type entry struct {
	uid      types.UID
	settings *settings // last good ones; nil if there never were any
	workers  []found
	fault    error
}

// found is a worker and how it came to be known.
type found struct {
	worker discover.Worker
	// pod is the UID of its pod, "" if that is not known. Two addresses of one pod are one worker.
	pod types.UID
	// ipv6 address.
	ipv6 bool
}

func newStore(t translator) *store {
	return &store{t: t, changed: make(chan struct{}, 1), entries: make(map[string]entry)}
}

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error {
	o, err := objectOf(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.entries[o.GetName()]
	if !known && len(s.entries) >= maxObjects {
		s.failure = fmt.Errorf("%w: over %d", discover.ErrTooMany, maxObjects)
		s.wake()
		return s.failure
	}
	e := s.t.translate(o, old)
	s.entries[o.GetName()] = e
	if !known || !e.equal(old) {
		s.news = true
		s.wake()
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(obj any) error {
	o, err := objectOf(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, o.GetName())
	s.news = true
	s.wake()
	return nil
}

// Replace implements cache.ReflectorStore: a list is complete.
func (s *store) Replace(list []any, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := make(map[string]entry, len(list))
	for _, obj := range list {
		o, err := objectOf(obj)
		if err != nil {
			return err
		}
		entries[o.GetName()] = s.t.translate(o, s.entries[o.GetName()])
	}
	s.entries = entries
	s.synced, s.news, s.failure = true, true, nil
	s.wake()
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

// failed notes that nothing new can be known.
func (s *store) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
	s.wake()
}

// recovered notes that a watch goes on. What is known is told again, so that the failure ends.
func (s *store) recovered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		s.failure, s.news = nil, true
		s.wake()
	}
}

// wake needs s.mu.
func (s *store) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// state is what is known.
type state struct {
	// news says whether workers are to be told.
	news    bool
	workers []discover.Worker
	// err is what is wrong with the API server or with objects.
	err error
}

// take returns what is known.
func (s *store) take() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := state{news: s.news && s.synced, err: s.failure}
	s.news = s.news && !s.synced
	if st.news {
		st.workers = s.merged()
	}
	if st.err == nil && s.synced {
		st.err = s.faults()
	}
	return st
}

// merged is each worker once (invariant 2), by id. Needs s.mu.
func (s *store) merged() []discover.Worker {
	var all []found
	for _, name := range slices.Sorted(maps.Keys(s.entries)) {
		all = append(all, s.entries[name].workers...)
	}
	slices.SortStableFunc(all, func(a, b found) int { // what is ready and IPv4 goes first
		return cmp.Or(boolCompare(a.ipv6, b.ipv6), boolCompare(a.worker.Unready != "", b.worker.Unready != ""))
	})
	out := make([]discover.Worker, 0, len(all))
	ids, pods := make(map[string]bool, len(all)), make(map[types.UID]bool)
	for _, f := range all {
		if ids[f.worker.ID] || f.pod != "" && pods[f.pod] {
			continue
		}
		ids[f.worker.ID] = true
		pods[f.pod] = true
		out = append(out, f.worker)
	}
	slices.SortFunc(out, func(a, b discover.Worker) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// faults is the first fault, and how many there are; nil without one. Needs s.mu.
func (s *store) faults() error {
	var first string
	n := 0
	for name, e := range s.entries {
		if e.fault == nil {
			continue
		}
		if n++; first == "" || name < first {
			first = name
		}
	}
	if n == 0 {
		return nil
	}
	err := fmt.Errorf("%s: %w", first, s.entries[first].fault)
	if n > 1 {
		err = fmt.Errorf("%w (and %d more objects)", err, n-1)
	}
	return err
}

// equal says whether e says the same as o.
func (e entry) equal(o entry) bool {
	return e.uid == o.uid && text(e.fault) == text(o.fault) && slices.EqualFunc(e.workers, o.workers, func(a, b found) bool {
		return a.pod == b.pod && a.ipv6 == b.ipv6 && a.worker.Equal(b.worker)
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// errObject is an object of another kind than was asked for.
var errObject = errors.New("unexpected object")

func objectOf(obj any) (metav1.Object, error) {
	switch o := obj.(type) {
	case *corev1.Pod:
		return o, nil
	case *discoveryv1.EndpointSlice:
		return o, nil
	}
	return nil, fmt.Errorf("%w: %T", errObject, obj)
}
