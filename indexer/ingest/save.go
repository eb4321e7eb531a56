package ingest

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/snapshot"
)

// savedWorker is a worker as a snapshot has it.
type savedWorker struct {
	Worker     Worker `json:"worker"`
	Configured bool   `json:"configured,omitempty"`
}

// Save writes the fleet and what its sources hold to a snapshot. Each source is saved as of one batch, not all as of one
// moment. skipped counts sources that hold nothing to go on from, or do not fit a snapshot.
func (f *Fleet) Save(out *snapshot.Writer) (saved, skipped int, err error) {
	workers := []savedWorker{} // a list, if an empty one
	var sources []*source
	f.mu.Lock()
	for _, id := range slices.Sorted(maps.Keys(f.workers)) {
		m := f.workers[id]
		workers = append(workers, savedWorker{Worker: m.Worker, Configured: m.configured})
		sources = append(sources, m.sources...)
	}
	f.mu.Unlock()
	text, err := json.Marshal(workers)
	if err != nil {
		return 0, 0, err
	}
	if err := out.Fleet(text); err != nil {
		return 0, 0, err
	}
	var s indexer.Saved
	for _, src := range sources {
		if !src.export(&s) {
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
	epoch := s.epoch()
	if !s.writer.Export(to) {
		return false
	}
	to.Cursor.Epoch = ""
	if len(epoch) <= maxEpoch && s.epoch() == epoch { // else the books may be of either
		to.Cursor.Epoch = epoch
	}
	return true
}

// epoch is that of the publisher's life; see stream.Stream.Epoch.
func (s *source) epoch() string {
	if s.feed != nil {
		s.push.Lock()
		defer s.push.Unlock()
		return s.feed.Epoch()
	}
	return s.stream.Epoch()
}
