package ingest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/kvscout/kvscout/events"
)

// ErrWorker is a worker description that cannot be used.
var ErrWorker = errors.New("bad worker")

// Role says which half of a disaggregated deployment a worker serves.
type Role uint8

const (
	// RoleAny is not stated: the worker serves both halves; a request takes any worker.
	RoleAny Role = iota
	RolePrefill
	RoleDecode
	// RoleBoth serves both halves. A request for it takes only such workers.
	RoleBoth
)

var roleNames = [...]string{"", "prefill", "decode", "both"}

func (r Role) String() string { return roleNames[r] }

// ParseRole is the inverse of Role.String.
func ParseRole(s string) (Role, bool) {
	i := slices.Index(roleNames[:], s)
	return Role(max(i, 0)), i >= 0
}

// Serves says whether a worker of role r answers a request for role want.
func (r Role) Serves(want Role) bool {
	switch want {
	case RoleAny:
		return true
	case RoleBoth:
		return r == RoleBoth || r == RoleAny
	default:
		return r == want || r == RoleBoth || r == RoleAny
	}
}

// Worker is one engine instance with its event streams.
type Worker struct {
	// ID is the id that the EPP uses, often "address:port".
	ID string
	// Labels are shown and never interpreted.
	Labels map[string]string
	Role   Role
	// Model is the served model name, Aliases its other names.
	Model   string
	Aliases []string
	// Adapters are the names of LoRA adapters that it serves, by which requests may name the model. An adapter whose
	// blocks are held is known without.
	Adapters []string
	// URL is the base of its serving port, "" if none is known; Fingerprint the configuration by which it turns requests
	// into tokens. Both are shown and never interpreted here.
	URL, Fingerprint string
	// Sources has one entry for each rank. Worker and Model of each are those of the worker.
	Sources []events.Source
}

// limits on what one description may hold.
const (
	maxRanks     = 1024
	maxLabels    = 64
	maxAliases   = 64
	maxAdapters  = 4096
	maxNameBytes = 1024
)

// normalise returns w with its sources made consistent and sorted, or everything wrong with it, joined.
func (w Worker) normalise() (Worker, error) {
	var faults []error
	bad := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("%w: "+format, append([]any{ErrWorker}, args...)...))
	}
	switch {
	case w.ID == "":
		bad("id is missing")
	case len(w.ID) > maxNameBytes || len(w.Model) > maxNameBytes || len(w.Fingerprint) > maxNameBytes:
		bad("id, model or fingerprint is longer than %d bytes", maxNameBytes)
	}
	if len(w.Sources) == 0 || len(w.Sources) > maxRanks {
		bad("worker %s has %d ranks, want 1 to %d", w.ID, len(w.Sources), maxRanks)
	}
	if len(w.Labels) > maxLabels || len(w.Aliases) > maxAliases || len(w.Adapters) > maxAdapters {
		bad("worker %s has %d labels, %d aliases and %d adapters, at most %d, %d and %d", w.ID, len(w.Labels), len(w.Aliases),
			len(w.Adapters), maxLabels, maxAliases, maxAdapters)
	}
	w.Labels, w.Sources = maps.Clone(w.Labels), slices.Clone(w.Sources)
	w.Aliases, w.Adapters = slices.Clone(w.Aliases), slices.Clone(w.Adapters)
	slices.SortFunc(w.Sources, func(a, b events.Source) int { return a.Rank - b.Rank })
	for i := range w.Sources {
		s := &w.Sources[i]
		s.Worker, s.Model = w.ID, w.Model
		if err := s.Validate(); err != nil {
			faults = append(faults, fmt.Errorf("%w: %w", ErrWorker, err))
		}
		if i > 0 && s.Rank == w.Sources[i-1].Rank {
			bad("worker %s has rank %d twice", w.ID, s.Rank)
		}
	}
	return w, errors.Join(faults...)
}

func (w Worker) equal(o Worker) bool { return reflect.DeepEqual(w, o) }

// Group makes workers of sources: those with one worker id are its ranks. Models of one worker must agree. It errs
// with ErrWorker.
func Group(sources []events.Source) ([]Worker, error) {
	var out []Worker
	for _, s := range sources {
		i := slices.IndexFunc(out, func(w Worker) bool { return w.ID == s.Worker })
		if i < 0 {
			out = append(out, Worker{ID: s.Worker, Model: s.Model})
			i = len(out) - 1
		}
		if out[i].Model != s.Model {
			return nil, fmt.Errorf("%w: worker %s serves %q and %q", ErrWorker, s.Worker, out[i].Model, s.Model)
		}
		out[i].Sources = append(out[i].Sources, s)
	}
	return out, nil
}
