package ingest

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/kvscout/kvscout/events/discover"
	"github.com/kvscout/kvscout/events/jetstream"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/snapshot"
)

// savedWorker is a worker as a snapshot has it.
type savedWorker struct {
	Worker     Worker `json:"worker"`
	Configured bool   `json:"configured,omitempty"`
	// Discovered says that discovery is to find it again: Restore cannot know whether it still is.
	Discovered bool `json:"discovered,omitempty"`
	// Stated is what a caller said of a worker that is asked about itself, Without the ranks that a call has taken out.
	Stated  *discover.Worker `json:"stated,omitempty"`
	Without []int            `json:"without,omitempty"`
}

// saved is the worker as a snapshot has it.
func (m *member) saved() savedWorker {
	s := savedWorker{Worker: m.Worker, Configured: m.configured, Discovered: m.configured && m.found}
	if m.call != nil {
		stated := m.call.stated
		stated.Known = nil // it is what Worker says
		s.Stated, s.Without = &stated, slices.Clone(m.call.without)
	}
	return s
}

// Save writes the fleet and what its sources hold to a snapshot. Each source is saved as of one batch, not all as of one
// moment; what is awaited of the snapshot that was restored is in it too. skipped counts sources that hold nothing to go on
// from, or do not fit a snapshot.
func (f *Fleet) Save(out *snapshot.Writer) (saved, skipped int, err error) {
	workers := []savedWorker{} // a list, if an empty one
	var sources []*source
	followed := f.followed.Load()
	cursor := followed.cursor() // first: what is copied after it is newer, and says so in its note
	f.mu.Lock()
	for _, id := range slices.Sorted(maps.Keys(f.workers)) {
		m := f.workers[id]
		if !followed.has(id) { // the cursor has those
			workers = append(workers, m.saved())
		}
		sources = append(sources, m.sources...)
	}
	carried := f.carryLocked()
	f.mu.Unlock()
	defer carried.done()
	workers = append(workers, carried.workers...)
	text, err := json.Marshal(workers)
	if err != nil {
		return 0, 0, err
	}
	if cursor != nil {
		log, err := json.Marshal(cursor)
		if err != nil {
			return 0, 0, err
		}
		text = append(text, log...)
	}
	if err := out.Fleet(text); err != nil {
		return 0, 0, err
	}
	var s indexer.Saved
	if saved, skipped, err = carried.streams(out, &s); err != nil {
		return saved, skipped, err
	}
	for _, src := range sources {
		export := src.export
		if followed.has(src.Worker) {
			export = func(s *indexer.Saved) bool { return cursor != nil && followed.export(src, s) }
		}
		if !export(&s) {
			skipped++
			continue
		}
		switch err := out.Stream(&s); {
		case errors.Is(err, snapshot.ErrTooLarge):
			f.log.Warn("source is left out of the snapshot", "source", src.ID(), "error", err)
			skipped++
		case err != nil:
			return saved, skipped, err
		default:
			saved++
		}
	}
	return saved, skipped, nil
}

// maxEpoch is the longest epoch that is saved; a publisher of a longer one cannot be proven to be the same.
const maxEpoch = 256

// export fills s with what the source holds, and the epoch of that.
func (s *source) export(to *indexer.Saved) bool {
	epoch, life := s.epoch(), s.life()
	if !s.writer.Export(to) {
		return false
	}
	to.Cursor.Epoch = ""
	if len(epoch) <= maxEpoch && s.epoch() == epoch { // else the books may be of either
		to.Cursor.Epoch = epoch
	}
	if life.Epoch != 0 && s.life() == life { // likewise
		text, err := json.Marshal(note{Shared: &life})
		if err != nil {
			return false
		}
		to.Note = text
	}
	return true
}

// life is how the log names the engine's life; zero if it is not shared.
func (s *source) life() jetstream.Life {
	if s.log == nil {
		return jetstream.Life{}
	}
	return s.log.Life()
}

// epoch is that of the publisher's life; see stream.Stream.Epoch.
func (s *source) epoch() string {
	if s.feed != nil {
		s.push.Lock()
		defer s.push.Unlock()
		return s.feed.Epoch()
	}
	if s.stream == nil {
		return ""
	}
	return s.stream.Epoch()
}
