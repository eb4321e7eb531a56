package jetstream

import (
	"fmt"
	"slices"
	"time"

	"github.com/kvscout/kvscout/events"
)

// Cursor is how far a replica has read the log: where another one goes on that has the same index, from a snapshot.
type Cursor struct {
	// Created is when the log's stream was made, by which another one of the same name is told apart. Zero: the log was
	// never reached, so there is nothing to go on from.
	Created time.Time `json:"created"`
	// Sequence is the number of the last record read.
	Sequence uint64 `json:"sequence"`
	// Members are the workers known.
	Members []Member `json:"members"`
	// Sources has the bookmark of each source, by events.Source.ID. One without is one of which nothing was heard.
	Sources map[string]Bookmark `json:"sources,omitempty"`
}

// Bookmark is what a replica has to know of a source to go on with it.
type Bookmark struct {
	Position
	// Record is the number of the record up to which the log was read when the bookmark was made, which may be later than the
	// cursor was. The source is told nothing from records up to it.
	Record uint64 `json:"record"`
	// Names are the epochs that mean the life at hand, Past those of lives that ended.
	Names []uint64 `json:"names,omitempty"`
	Past  []uint64 `json:"past,omitempty"`
	// Leader is the ingester whose word counts, and Led when it spoke last; Heard is when any last told of the source. Both
	// are by the log's clock.
	Leader uint64    `json:"leader,omitempty"`
	Led    time.Time `json:"led,omitzero"`
	Heard  time.Time `json:"heard,omitzero"`
	// Lossy: messages of this life were lost. State and Why are as Leader told them.
	Lossy bool         `json:"lossy,omitempty"`
	State events.State `json:"state,omitempty"`
	Why   string       `json:"why,omitempty"`
}

// Prover is a sink that wants to know that what it was restored with is still true: every record since is there to be
// read, or the source's next one continues it. Proven is called at most once, before what follows.
type Prover interface{ Proven() }

// StartFrom goes on behind a cursor. The index must hold what it held when the cursor was taken, and each source what it
// held when its bookmark was. Bookmarks of sources that the target does not follow are left out. It is to be called
// before Run. If the log is another one by now, Run errs with ErrCursor before it has told any source anything.
func (f *Follower) StartFrom(c Cursor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range c.Members {
		if err := f.target.Describe(m); err != nil {
			return fmt.Errorf("%w: worker %q: %w", ErrCursor, m.ID, err)
		}
		f.members[m.ID] = &member{Member: m}
	}
	for id, b := range c.Sources {
		worker, rank, err := events.ParseID(id)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCursor, err)
		}
		if s := f.sourceLocked(place{worker, rank}); s != nil {
			s.resume(b)
		}
	}
	f.created, f.next, f.known, f.resumed = c.Created, c.Sequence+1, c.Sequence, true
	f.n.behind.Store(true) // until the log shows what came since
	return nil
}

// StartOver forgets the cursor, the workers and everything else: the next Run reads the log from its beginning. It must
// not be called while Run runs.
func (f *Follower) StartOver() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.members {
		f.target.Forget(id)
	}
	clear(f.members)
	clear(f.sources)
	f.created, f.next, f.known, f.resumed = time.Time{}, 1, 0, false
}

// Pause calls do with the cursor while no record is taken, so that what do copies of the index belongs to the cursor.
func (f *Follower) Pause(do func(Cursor)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.cursorLocked()
	c.Sources = make(map[string]Bookmark)
	for p, s := range f.sources {
		c.Sources[events.Source{Worker: p.worker, Rank: p.rank}.ID()] = s.bookmark(f.next - 1)
	}
	do(c)
}

// Cursor is the cursor without any source. With bookmarks that are made later it is one to start from.
func (f *Follower) Cursor() Cursor {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cursorLocked()
}

func (f *Follower) cursorLocked() Cursor {
	c := Cursor{Created: f.created, Sequence: max(f.next-1, f.known)}
	for _, m := range f.members {
		c.Members = append(c.Members, m.Member)
	}
	return c
}

// PauseSource calls do with the bookmark of one source while no record is taken, so that what do copies of the source
// belongs to the bookmark. It is false, and do not called, when nothing was heard of the source, or records of it may
// have been trimmed.
func (f *Follower) PauseSource(worker string, rank int, do func(Bookmark)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sources[place{worker, rank}]
	if s == nil || s.unproven && !f.resumed {
		return false
	}
	do(s.bookmark(f.next - 1))
	return true
}

// bookmark is where the source is, when the log was read up to a record.
func (s *source) bookmark(record uint64) Bookmark {
	return Bookmark{
		Position: s.at, Record: max(record, s.record), Names: slices.Clone(s.names), Past: slices.Clone(s.past),
		Leader: s.leader, Led: s.led, Heard: s.stored, Lossy: s.lossy, State: s.state, Why: s.why,
	}
}

// resume puts the source where a bookmark says it is.
func (s *source) resume(b Bookmark) {
	s.at, s.record, s.past, s.lossy = b.Position, b.Record, b.Past, b.Lossy
	s.leader, s.led, s.state, s.why = b.Leader, b.Led, b.State, b.Why
	s.heard, s.stored = b.Heard, b.Heard
	s.unproven = true
	if b.Epoch != 0 {
		s.names = b.Names
		if !slices.Contains(s.names, b.Epoch) {
			s.names = append(s.names, b.Epoch)
		}
		s.remember(b.Last, b.Sum)
	}
	if p, ok := s.sink.(Prover); ok {
		s.proven = p.Proven
	}
}

// prove notes that no record of the source was missed.
func (s *source) prove() {
	s.unproven = false
	if s.proven != nil {
		s.proven()
		s.proven = nil
	}
}
