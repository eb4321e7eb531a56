package ingest

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"sync"
	"syscall"
	"time"

	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/snapshot"
)

// Keeper keeps a fleet in a snapshot: it restores it once, and saves it now and then.
type Keeper struct {
	index *indexer.Index
	fleet *Fleet
	path  string
	log   *slog.Logger

	save  sync.Mutex // held by the save under way
	mu    sync.Mutex // guards stats
	stats KeeperStats
}

// Outcomes of Keeper.Restore.
const (
	// OutcomeRestored: the snapshot was taken over.
	OutcomeRestored = "restored"
	// OutcomeNone: there was no file.
	OutcomeNone = "none"
	// OutcomeDamaged, OutcomeVersion and OutcomeUnreadable: the file was refused, and the service began empty.
	OutcomeDamaged    = "damaged"
	OutcomeVersion    = "version"
	OutcomeUnreadable = "unreadable"
)

// KeeperStats says what became of the snapshot.
type KeeperStats struct {
	// Outcome of the start, Why the error behind it, and what was Restored, from a file of the age Age then.
	Outcome, Why string
	Restored     Restored
	Age          time.Duration
	// Saves counts the snapshots written, Failures those that were not, by reason.
	Saves    uint64
	Failures map[string]uint64
	// Of the last snapshot written: when, how long that took, its size, and how many sources are in it and were left out.
	Saved            time.Time
	Took             time.Duration
	Bytes            int64
	Sources, Skipped int
}

// NewKeeper returns a keeper of the fleet that feeds index, in the file at path.
func NewKeeper(index *indexer.Index, fleet *Fleet, path string, log *slog.Logger) *Keeper {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Keeper{index: index, fleet: fleet, path: path, log: log, stats: KeeperStats{Failures: make(map[string]uint64)}}
}

// Restore registers the configured workers and takes the snapshot over. A file that is refused is no error: the service
// then begins empty, and says so. It errs as Fleet.Restore does for a configured worker.
func (k *Keeper) Restore(configured []Worker) error {
	file, err := snapshot.Open(k.path, k.index.Fingerprint())
	var restored Restored
	if err == nil {
		restored, err = k.fleet.Restore(configured, file)
		if err != nil && !errors.Is(err, snapshot.ErrDamaged) {
			return err
		}
	}
	if err != nil {
		if _, err := k.fleet.Restore(configured, nil); err != nil {
			return err
		}
	}
	k.note(file, restored, err)
	return nil
}

// note notes and tells what became of the file.
func (k *Keeper) note(file *snapshot.File, restored Restored, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := &k.stats
	s.Outcome, s.Restored = outcome(err), restored
	if err == nil {
		s.Age = time.Since(file.Created)
		k.log.Info("snapshot restored", "file", k.path, "age", s.Age, "bytes", file.Bytes, "sources", restored.Sources,
			"workers", restored.Workers, "dropped", restored.Dropped)
		return
	}
	if s.Outcome == OutcomeNone {
		k.log.Info("there is no snapshot yet, the index begins empty", "file", k.path)
		return
	}
	s.Why = err.Error()
	k.log.Error("snapshot is refused, the index begins empty", "file", k.path, "error", err)
}

func outcome(err error) string {
	switch {
	case err == nil:
		return OutcomeRestored
	case errors.Is(err, fs.ErrNotExist):
		return OutcomeNone
	case errors.Is(err, snapshot.ErrVersion):
		return OutcomeVersion
	case errors.Is(err, snapshot.ErrDamaged):
		return OutcomeDamaged
	default:
		return OutcomeUnreadable
	}
}

// Run saves the fleet at each interval until ctx ends.
func (k *Keeper) Run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = k.Save() // which was counted and told
		}
	}
}

// Save saves the fleet now.
func (k *Keeper) Save() error {
	k.save.Lock()
	defer k.save.Unlock()
	began := time.Now()
	saved, skipped := 0, 0
	size, err := snapshot.Write(k.path, k.index.Fingerprint(), func(out *snapshot.Writer) (err error) {
		saved, skipped, err = k.fleet.Save(out)
		return err
	})
	took := time.Since(began)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.stats.Failures[failure(err)]++
		k.log.Error("snapshot is not written", "file", k.path, "error", err)
		return err
	}
	k.stats.Saves++
	k.stats.Saved, k.stats.Took, k.stats.Bytes, k.stats.Sources, k.stats.Skipped = time.Now(), took, size, saved, skipped
	k.log.Debug("snapshot written", "file", k.path, "bytes", size, "took", took, "sources", saved, "skipped", skipped)
	return nil
}

// failure names why a snapshot was not written.
func failure(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "no_space"
	case errors.Is(err, fs.ErrPermission):
		return "permission"
	case errors.Is(err, fs.ErrNotExist):
		return "no_directory"
	default:
		return "io"
	}
}

// Stats is what became of the snapshot so far.
func (k *Keeper) Stats() KeeperStats {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.stats
	s.Failures = maps.Clone(s.Failures)
	late := k.fleet.Awaited()
	s.Restored.Sources += late.Sources
	s.Restored.Waiting = late.Waiting
	if len(late.Dropped) > 0 {
		s.Restored.Dropped = maps.Clone(s.Restored.Dropped)
		for reason, n := range late.Dropped {
			s.Restored.Dropped[reason] += n
		}
	}
	if n := k.fleet.followed.Load().dropped(); n > 0 {
		s.Restored.Sources -= n
		s.Restored.Dropped = maps.Clone(s.Restored.Dropped)
		s.Restored.Dropped[DropLog] += n
	}
	return s
}
