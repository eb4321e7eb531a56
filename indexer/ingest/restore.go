package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/jetstream"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/snapshot"
)

// Reasons why a source of a snapshot was not restored.
const (
	// DropUnconfigured: it was configured or discovered when the snapshot was written and is not any more.
	DropUnconfigured = "not_configured"
	// DropChanged: it is described otherwise now.
	DropChanged = "changed"
	// DropRefused: it could not be taken over; the log has the error.
	DropRefused = "refused"
)

// Restored says what was taken over from a snapshot.
type Restored struct {
	// Sources taken over, and Workers registered again that are not configured.
	Sources, Workers int
	// Waiting is how many sources wait for discovery to find their workers again; see Fleet.Awaited.
	Waiting int
	// Dropped counts the sources that were not taken over, by reason.
	Dropped map[string]int
}

// Restore registers the configured workers, and from the snapshot those that others had registered when it was written.
// The sources of both go on from where the snapshot has them. So do those of workers that discovery had found, once Discovered
// names them again. It errs with an error of Register of a configured worker, and with snapshot.ErrDamaged if the snapshot's
// list of workers cannot be read; nothing is registered then. file may be nil, and is closed when it is not needed any more.
func (f *Fleet) Restore(configured []Worker, file *snapshot.File) (Restored, error) {
	r := &restoring{f: f, file: file, out: Restored{Dropped: make(map[string]int)}, bookmarks: make(map[string]jetstream.Bookmark)}
	var saved []savedWorker
	var log *jetstream.Cursor
	if file != nil {
		var err error
		if saved, log, err = readWorkers(file.Fleet(), f.opts.MaxWorkers); err != nil {
			return r.out, errors.Join(err, file.Close())
		}
	}
	known := make(map[string]bool)
	for _, w := range configured {
		known[w.ID] = true
		if _, err := f.register(w, true, r); err != nil {
			return r.out, errors.Join(err, r.close())
		}
	}
	var left []savedWorker
	for _, s := range saved {
		w := s.Worker
		switch {
		case s.Discovered && !known[w.ID]:
			left = append(left, s)
			r.out.Waiting += len(r.left(w))
			continue
		case known[w.ID] || s.Configured:
			r.drop(w, DropUnconfigured)
			continue
		}
		if _, err := f.register(w, false, r); err != nil {
			f.log.Warn("worker of the snapshot is not registered again", "worker", w.ID, "error", err)
			r.drop(w, DropRefused)
			continue
		}
		f.restoreCall(s)
		r.out.Workers++
	}
	if log != nil {
		f.followed.Load().restore(*log, r)
	}
	out := r.out
	if file != nil {
		f.await(r, left)
	}
	return out, nil
}

// readWorkers reads what Save wrote: the workers, and where the log was, if one was followed. It errs with
// snapshot.ErrDamaged.
func readWorkers(text []byte, limit int) (list []savedWorker, log *jetstream.Cursor, err error) {
	bad := func(err error) ([]savedWorker, *jetstream.Cursor, error) {
		return nil, nil, fmt.Errorf("%w: workers: %w", snapshot.ErrDamaged, err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil {
		return bad(err)
	} else if t != json.Delim('[') {
		return bad(fmt.Errorf("%v is no list", t))
	}
	for dec.More() {
		var w savedWorker
		if err := dec.Decode(&w); err != nil {
			return bad(err)
		}
		if len(list) == limit {
			return bad(fmt.Errorf("%w: %d", ErrTooMany, limit))
		}
		list = append(list, w)
	}
	if _, err := dec.Token(); err != nil {
		return bad(err)
	}
	switch err := dec.Decode(&log); {
	case errors.Is(err, io.EOF):
		return list, nil, nil
	case err != nil:
		return bad(err)
	case log == nil || len(log.Members) > limit:
		return bad(errors.New("the log's cursor is none"))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return bad(errors.New("something follows the log's cursor"))
	}
	return list, log, nil
}

// restoring is a snapshot from which sources take their state as they open. A nil one has nothing.
type restoring struct {
	f     *Fleet
	file  *snapshot.File
	saved indexer.Saved
	note  note // of the source taken over last
	out   Restored
	seen  map[string]bool // ids of sources that asked
	// bookmarks of the sources of a log that were taken over, by id.
	bookmarks map[string]jetstream.Bookmark
	reading   sync.Mutex // held while file is read; taken after Fleet.mu
}

// close closes the file, if there is one.
func (r *restoring) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// left is which of a worker's sources the file has and nobody has asked for.
func (r *restoring) left(w Worker) (ids []string) {
	for _, s := range w.Sources {
		if _, ok := r.file.Find(s.ID()); ok && !r.seen[s.ID()] {
			ids = append(ids, s.ID())
		}
	}
	return ids
}

// take fills a new writer from the snapshot and says where its stream goes on. Ranks of all that the stream's batches
// named are left out: they have streams of their own now.
func (r *restoring) take(src events.Source, all []events.Source, w *indexer.Writer) (events.Cursor, bool) {
	if r == nil || r.file == nil {
		return events.Cursor{}, false
	}
	id := src.ID()
	if r.seen == nil {
		r.seen = make(map[string]bool)
	}
	r.seen[id] = true
	at, ok := r.file.Find(id)
	if !ok {
		return events.Cursor{}, false
	}
	r.reading.Lock()
	err := r.file.Stream(at, &r.saved)
	r.reading.Unlock()
	if err == nil {
		r.note, err = readNote(r.saved.Note, r.f.followed.Load().has(src.Worker))
	}
	if err == nil {
		r.saved.Books = slices.DeleteFunc(r.saved.Books, func(b indexer.Book) bool {
			return b.Rank != src.Rank && slices.ContainsFunc(all, func(o events.Source) bool { return o.Rank == b.Rank })
		})
		err = w.Restore(&r.saved, r.f.opts.Stream.StaleAfter)
	}
	switch {
	case errors.Is(err, indexer.ErrOtherSource):
		r.out.Dropped[DropChanged]++
		r.f.log.Info("source begins anew: the snapshot has it described otherwise", "source", id)
		return events.Cursor{}, false
	case err != nil:
		r.out.Dropped[DropRefused]++
		r.f.log.Warn("source begins anew: the snapshot's is refused", "source", id, "error", err)
		return events.Cursor{}, false
	}
	r.out.Sources++
	if r.note.Followed != nil {
		r.bookmarks[id] = *r.note.Followed
	}
	r.f.log.Info("source goes on from the snapshot", "source", id, "sequence", r.saved.Cursor.Seq, "at", r.saved.Cursor.At)
	return r.saved.Cursor, true
}

// drop counts the sources of a worker that nobody asked for.
func (r *restoring) drop(w Worker, reason string) {
	for _, id := range r.left(w) {
		r.out.Dropped[reason]++
		r.f.log.Info("source of the snapshot is dropped", "source", id, "reason", reason)
	}
}
