package local

import (
	"context"
	"fmt"
	"time"

	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/render/hub"
)

// fingerprintScheme marks our fingerprints, which are not comparable with those that engines state.
const fingerprintScheme = "kvscout:"

// Load loads the files anew, whether they have changed or not. If it errs, what was loaded stays in use, and Report says
// so; it errs with render.ErrUnusable.
func (r *Renderer) Load() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.loadLocked(r.dir)
}

// Swap takes another directory. If its files cannot be used, the old ones stay in use, and the old directory counts.
func (r *Renderer) Swap(dir string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.loadLocked(dir); err != nil {
		return err
	}
	r.dir = dir
	return nil
}

// loadLocked loads the files of dir and puts them into use. Needs r.mu.
func (r *Renderer) loadLocked(dir string) error {
	r.stamp = hub.Stamp(dir) // before they are read: a change while they are is then seen
	next, err := r.open(dir)
	if err != nil {
		fault := failf(render.ReasonUnusable, "%v", err)
		r.fault.Store(fault)
		return fault
	}
	r.fault.Store(nil)
	r.loads.Add(1)
	next.version = 1
	if old := r.current.Load(); old != nil {
		next.version = old.version + 1
	}
	r.current.Store(next)
	return nil
}

func (r *Renderer) open(dir string) (*loaded, error) {
	files, err := hub.Read(dir)
	if err != nil {
		return nil, err
	}
	m, err := newModel(files, &r.opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return &loaded{model: m, fingerprint: fingerprintScheme + files.Digest(r.opts.settings())}, nil
}

// Watch looks at the files at each interval, until ctx ends, and loads them when they have changed. It tells each
// outcome: nil for files that are now in use.
func (r *Renderer) Watch(ctx context.Context, interval time.Duration, tell func(error)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if tried, err := r.reload(); tried {
			tell(err)
		}
	}
}

// reload loads the files if they have changed since they were tried last.
func (r *Renderer) reload() (tried bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if hub.Stamp(r.dir) == r.stamp {
		return false, nil
	}
	return true, r.loadLocked(r.dir)
}
