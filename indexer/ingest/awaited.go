package ingest

import (
	"maps"
	"slices"
	"time"

	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/snapshot"
)

// DefaultAwait is how long what a snapshot has of a discovered worker is kept for discovery to find it again.
const DefaultAwait = 10 * time.Minute

// awaited is what a snapshot has of workers that only discovery can name, since they are in Kubernetes or were asked about
// themselves. They are in no answer until discovery has found them; then they go on as others do. The state stays in the file
// until that. All fields are guarded by Fleet.mu.
type awaited struct {
	r       *restoring
	workers map[string]savedWorker // not found yet
	until   time.Time
	saves   int // that copy from the file
}

// await lets the workers wait to be found, and takes the file over.
func (f *Fleet) await(r *restoring, list []savedWorker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := &awaited{r: r, workers: make(map[string]savedWorker), until: time.Now().Add(f.opts.Await)}
	r.out = Restored{Dropped: make(map[string]int)}
	for _, w := range list {
		a.workers[w.Worker.ID] = w
	}
	f.awaited = a
	f.settleLocked()
}

// awaitedLocked is where a worker that was found takes its state from; nil if it is not awaited. Needs f.mu.
func (f *Fleet) awaitedLocked(id string) *restoring {
	if f.awaited == nil {
		return nil
	}
	if _, ok := f.awaited.workers[id]; !ok {
		return nil
	}
	return f.awaited.r
}

// forgoLocked ends the waiting for a worker. Its sources that were not taken over are dropped for that reason. Needs f.mu.
func (f *Fleet) forgoLocked(id, reason string) {
	a := f.awaited
	if a == nil {
		return
	}
	if w, ok := a.workers[id]; ok {
		delete(a.workers, id)
		a.r.drop(w.Worker, reason)
		f.settleLocked()
	}
}

// settleLocked ends the waiting that has lasted too long, and closes the file once nobody needs it. Needs f.mu.
func (f *Fleet) settleLocked() {
	a := f.awaited
	if a == nil || a.r.file == nil {
		return
	}
	if !time.Now().Before(a.until) {
		for _, w := range a.workers {
			a.r.drop(w.Worker, DropUnconfigured)
		}
		clear(a.workers)
	}
	if len(a.workers) > 0 || a.saves > 0 {
		return
	}
	if err := a.r.file.Close(); err != nil {
		f.log.Warn("the snapshot that was restored is not closed", "error", err)
	}
	a.r.file, a.r.saved = nil, indexer.Saved{}
}

// Awaited is what became of the sources that Restore left to discovery, since then.
func (f *Fleet) Awaited() Restored {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settleLocked()
	a := f.awaited
	if a == nil {
		return Restored{}
	}
	out := a.r.out
	out.Dropped = maps.Clone(out.Dropped)
	for _, w := range a.workers {
		out.Waiting += len(a.r.left(w.Worker))
	}
	return out
}

// carried is what one snapshot hands on to the next of the workers that are awaited.
type carried struct {
	f       *Fleet
	r       *restoring
	workers []savedWorker
}

// carryLocked keeps the file open until done is called. Needs f.mu.
func (f *Fleet) carryLocked() *carried {
	f.settleLocked()
	a := f.awaited
	if a == nil || len(a.workers) == 0 {
		return &carried{}
	}
	a.saves++
	c := &carried{f: f, r: a.r}
	for _, id := range slices.Sorted(maps.Keys(a.workers)) {
		c.workers = append(c.workers, a.workers[id])
	}
	return c
}

// streams copies the sources of the workers, also of one that was found meanwhile: it is in none of what Save writes besides.
// One that cannot be read is left out.
func (c *carried) streams(out *snapshot.Writer, s *indexer.Saved) (saved, skipped int, err error) {
	for _, w := range c.workers {
		for _, src := range w.Worker.Sources {
			at, ok := c.r.file.Find(src.ID())
			if !ok {
				continue
			}
			c.r.reading.Lock()
			err := c.r.file.Stream(at, s)
			c.r.reading.Unlock()
			if err != nil {
				c.f.log.Warn("source that is awaited is left out of the snapshot", "source", src.ID(), "error", err)
				skipped++
				continue
			}
			if err := out.Stream(s); err != nil {
				return saved, skipped, err
			}
			saved++
		}
	}
	return saved, skipped, nil
}

// done ends it.
func (c *carried) done() {
	if c.f == nil {
		return
	}
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.awaited.saves--
	c.f.settleLocked()
}
