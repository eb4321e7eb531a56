package model

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// history is every block that a source ever held: on the device, and in any tier that scores.
type history struct{ device, any map[string]bool }

// key names a block of a prompt in a scope.
func (sc scope) key(text string) string {
	return sc.model + "\x00" + sc.salt + "\x00" + sc.adapter + "\x00" + text
}

func (h history) note(s *Source) {
	for c := range s.copies {
		key := c.key(s.texts[c.handle])
		if c.tier == events.TierDevice {
			h.device[key] = true
		}
		if c.tier != events.TierUnknown {
			h.any[key] = true
		}
	}
}

// most is the longest run of blocks of size each of which was held at some time, in tokens.
func (h history) most(held map[string]bool, q indexer.Query, size int, pairs bool) int {
	n := 0
	for _, text := range texts(q, size, pairs) {
		if !held[scope{model: q.Model, salt: q.Salt, adapter: q.Adapter}.key(text)] {
			break
		}
		n += size
	}
	return n
}

// TestModel_Rule16_ReadersBesideWriters writes every source from a goroutine of its own beside readers. No reader may
// see a source hold what it never held, however the two fall together, and what the writers leave is what the model
// says, in whatever order they ran (rules 1, 8 and 16).
func TestModel_Rule16_ReadersBesideWriters(t *testing.T) {
	seeds(t, 3*time.Second, func(seed uint64, steps int) {
		w := newWorld(t, seed, 30)
		ever := make(map[string]history)
		scripts := make([][]step, len(w.list))
		for i, p := range w.list {
			h := history{device: map[string]bool{}, any: map[string]bool{}}
			for range steps / len(w.list) * 3 {
				s := p.gen.step()
				if s.kind == stepReopen || s.kind == stepRestart {
					s.kind = stepReset // a reader may ask between the two; that is not what is tested here
				}
				scripts[i] = append(scripts[i], s)
				switch s.kind {
				case stepApply:
					// Event by event: what a batch holds in passing may be seen.
					p.model.ApplyWatched(s.batch, h.note)
				default:
					p.model.Clear()
				}
			}
			ever[p.gen.conf.ID()] = h
		}
		beside(w, scripts, ever)
		if t.Failed() {
			return
		}
		for _, p := range w.list {
			w.counts(p)
		}
		for range 50 {
			w.check(query(w.rng, w.texts))
		}
		w.finish()
	})
}

// beside plays each script in a goroutine, with two readers until all are through.
func beside(w *world, scripts [][]step, ever map[string]history) {
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for r := range uint64(2) {
		rng := rand.New(rand.NewPCG(r, 99))
		readers.Go(func() { // stopped by stop when the writers are through, and waited for below
			for {
				select {
				case <-stop:
					return
				default:
					w.look(query(rng, w.texts), ever)
				}
			}
		})
	}
	for i, p := range w.list {
		writers.Go(func() { // ends with its script; waited for below
			for _, s := range scripts[i] {
				switch s.kind {
				case stepApply:
					p.ledger.Apply(&s.batch)
					p.twin.Apply(&s.batch)
				case stepReset:
					p.ledger.Reset()
					p.twin.Reset()
				case stepGap:
					p.ledger.Gap(1)
					p.twin.Gap(1)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

// look asks one prompt and checks that no source claims more than it ever held.
func (w *world) look(q indexer.Query, ever map[string]history) {
	list, err := w.x.Lookup(context.Background(), q)
	if err != nil {
		w.t.Error(err)
		return
	}
	holders, err := w.x.NewReader().Holders(context.Background(), &q)
	if err != nil {
		w.t.Error(err)
	}
	for _, m := range holders {
		src := m.Ledger.Source()
		device := 0
		for _, size := range []int{4, 8} {
			h := ever[src.ID()]
			device = max(device, h.most(h.device, q, size, src.PairKeys))
		}
		if m.Held > device && src.Worker != "mixed" {
			w.t.Errorf("%s: holds %d, ever %d", src.ID(), m.Held, device)
		}
	}
	for _, m := range list {
		h := ever[m.Source.ID()]
		device, any := 0, 0
		for _, size := range []int{4, 8} {
			device = max(device, h.most(h.device, q, size, m.Source.PairKeys))
			any = max(any, h.most(h.any, q, size, m.Source.PairKeys))
		}
		if m.Source.Worker == "mixed" {
			continue // its runs join blocks of both sizes
		}
		if m.Held > device || m.Reusable > device || m.With[events.TierUnknown] > any {
			w.t.Errorf("%s: held %d, reusable %d, ever %d; with all tiers %d, ever %d",
				m.Source.ID(), m.Held, m.Reusable, device, m.With[events.TierUnknown], any)
		}
	}
}
