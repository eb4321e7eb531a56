package jetstream

import (
	"fmt"
	"time"

	"github.com/kvscout/kvscout/events"
)

// Cursor is how far a replica has read the log: where another one goes on that has the same index, from a snapshot.
type Cursor struct {
	// Created is when the log's stream was made, by which another one of the same name is told apart.
	Created time.Time `json:"created"`
	// Sequence is the number of the last record read.
	Sequence uint64 `json:"sequence"`
	// Sources has the position in each source, by events.Source.ID.
	Sources map[string]Position `json:"sources"`
	// Members are the workers known.
	Members []Member `json:"members"`
}

// StartFrom goes on behind a cursor. The index must hold what it held when the cursor was taken. It is to be called before
// Run. If the log is another one by now, Run errs with ErrCursor before it has changed anything.
func (f *Follower) StartFrom(c Cursor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, p := range c.Sources {
		worker, rank, err := events.ParseID(id)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCursor, err)
		}
		f.resume[place{worker, rank}] = p
	}
	for _, m := range c.Members {
		if err := f.target.Describe(m); err != nil {
			return fmt.Errorf("%w: worker %q: %w", ErrCursor, m.ID, err)
		}
		f.members[m.ID] = &member{Member: m}
	}
	f.created, f.next = c.Created, c.Sequence+1
	return nil
}

// Pause calls do with the cursor while no record is taken, so that what do copies of the index belongs to the cursor.
func (f *Follower) Pause(do func(Cursor)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := Cursor{Created: f.created, Sequence: f.next - 1, Sources: make(map[string]Position)}
	for p, s := range f.sources {
		c.Sources[events.Source{Worker: p.worker, Rank: p.rank}.ID()] = s.at
	}
	for p, at := range f.resume {
		c.Sources[events.Source{Worker: p.worker, Rank: p.rank}.ID()] = at
	}
	for _, m := range f.members {
		c.Members = append(c.Members, m.Member)
	}
	do(c)
}
