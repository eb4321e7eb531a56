package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kvscout/kvscout/events/jetstream"
	"github.com/kvscout/kvscout/indexer"
)

// DropLog is why a source of a snapshot was not restored that came from a log: none is followed now, it is another one,
// or the snapshot does not say how far it had been read.
const DropLog = "log"

// note is what a snapshot has beside a source, as JSON: for one that is followed how far the log was read, for one that is
// shared how the log names the life of its engine. Others have none.
type note struct {
	Followed *jetstream.Bookmark `json:"followed,omitempty"`
	Shared   *jetstream.Life     `json:"shared,omitempty"`
}

// readNote reads a note. It errs with indexer.ErrOtherSource if one of the two was followed and the other is not.
func readNote(text []byte, followed bool) (n note, err error) {
	if len(text) > 0 {
		if err := json.Unmarshal(text, &n); err != nil {
			return note{}, fmt.Errorf("note: %w", err)
		}
	}
	if (n.Followed != nil) != followed {
		return note{}, fmt.Errorf("%w: one is of a log", indexer.ErrOtherSource)
	}
	return n, nil
}

// life is that of a shared source; without one the log finds another name for it.
func (n note) life() jetstream.Life {
	if n.Shared == nil {
		return jetstream.Life{}
	}
	return *n.Shared
}

// Attach says which follower feeds the fleet, so that snapshots have how far it has read. It is to be called before Restore
// and Run.
func (w *Followed) Attach(f *jetstream.Follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.follower = f
}

// Run reads the log until ctx ends, from where a snapshot has it. If that shows to be of another log, everything that was
// restored of it is dropped, and the log read from its beginning. It errs as jetstream.Follower.Run does.
func (w *Followed) Run(ctx context.Context) error {
	f := w.attached()
	for {
		err := f.Run(ctx)
		if !errors.Is(err, jetstream.ErrCursor) {
			return err
		}
		w.mu.Lock()
		n := w.restored
		w.restored, w.lost = 0, n
		w.mu.Unlock()
		w.fleet.log.Warn("what the snapshot has of the log is dropped", "sources", n, "error", err)
		f.StartOver()
	}
}

// attached is the follower, nil if there is none. It may be called on nil.
func (w *Followed) attached() *jetstream.Follower {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.follower
}

// dropped is how many sources were dropped by Run. It may be called on nil.
func (w *Followed) dropped() int {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// cursor is how far the log was read, nil if there is nothing to go on from.
func (w *Followed) cursor() *jetstream.Cursor {
	f := w.attached()
	if f == nil {
		return nil
	}
	c := f.Cursor()
	if c.Created.IsZero() {
		return nil
	}
	return &c
}

// export fills s with what a followed source holds, and notes how far the log was read for it.
func (w *Followed) export(src *source, s *indexer.Saved) (ok bool) {
	f := w.attached()
	if f == nil {
		return false
	}
	f.PauseSource(src.Worker, src.Rank, func(b jetstream.Bookmark) {
		if !src.writer.Export(s) {
			return
		}
		text, err := json.Marshal(note{Followed: &b})
		s.Note, ok = text, err == nil
	})
	return ok
}

// restore goes on behind the cursor of a snapshot.
func (w *Followed) restore(c jetstream.Cursor, r *restoring) {
	f := w.attached()
	if f == nil {
		for _, m := range c.Members {
			r.drop(Worker{Sources: m.Events()}, DropLog)
		}
		return
	}
	w.mu.Lock()
	w.from = r
	w.mu.Unlock()
	members := c.Members
	c.Members = nil
	for _, m := range members {
		if err := w.Describe(m); err != nil {
			w.fleet.log.Warn("worker of the snapshot is not followed", "worker", m.ID, "error", err)
			r.drop(Worker{Sources: m.Events()}, DropRefused)
			continue
		}
		c.Members = append(c.Members, m)
	}
	w.mu.Lock()
	w.from, w.restored = nil, len(r.bookmarks)
	w.mu.Unlock()
	c.Sources = r.bookmarks
	if err := f.StartFrom(c); err != nil { // not for workers that could be described just now
		w.fleet.log.Error("the log is read from its beginning", "error", err)
		f.StartOver()
		r.out.Sources -= len(r.bookmarks)
		r.out.Dropped[DropLog] += len(r.bookmarks)
	}
}
