package model

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// history is what a source ever held, and what it held all the time.
type history struct {
	sizes []int // of blocks
	pairs bool  // which are counted in pairs
	// device and any are all blocks that were held at some time, on the device and in any tier that scores.
	device, any map[block]bool
	// always are the blocks that were on the device when readers began and never left it. Nil for a source of several
	// groups: what a new group holds decides too, so there is no least.
	always map[block]bool
}

// block is a block of a prompt in a namespace, whatever its size.
type block struct {
	model, salt, adapter string
	prefix               int
}

func (c copyOf) block(s *Source) block {
	return block{c.model, c.salt, c.adapter, s.prefixes[c.handle]}
}

// note takes down what is held now.
func (h *history) note(s *Source) {
	now := make(map[block]bool)
	for c := range s.copies {
		b := c.block(s)
		if c.tier == events.TierDevice {
			h.device[b], now[b] = true, true
		}
		if c.tier != events.TierUnknown {
			h.any[b] = true
		}
	}
	for b := range h.always {
		if !now[b] {
			delete(h.always, b)
		}
	}
}

// begin takes down what is held when readers begin.
func (h *history) begin(s *Source) {
	for c := range s.copies {
		if c.tier == events.TierDevice && h.always != nil {
			h.always[c.block(s)] = true
		}
	}
}

// run is the longest run of blocks that are among held, in tokens.
func (h *history) run(held map[block]bool, q *Prompt, pairs bool) (longest int) {
	for _, size := range h.sizes {
		n := 0
		for _, prefix := range q.prefixes(size, pairs) {
			if !held[block{q.Model, q.Salt, q.Adapter, prefix}] {
				break
			}
			n += size
		}
		longest = max(longest, n)
	}
	return longest
}

// histories plays the script to the models alone, and leaves them as the writers must leave the index.
func (w *world) histories() map[string]*history {
	out := make(map[string]*history)
	for i, p := range w.list {
		h := &history{pairs: p.conf.PairKeys, device: map[block]bool{}, any: map[block]bool{}, always: map[block]bool{}}
		out[p.conf.ID()] = h
		h.sizes = w.script.sizes(i)
		if w.script.grouped(i) || len(h.sizes) > 1 {
			h.always = nil
		}
		begun := false
		for _, o := range w.script.Ops {
			if o.Source != i {
				continue
			}
			if !o.Early && !begun {
				begun = true
				h.begin(p.model)
			}
			switch o.Kind {
			case stepApply:
				// Event by event: what a batch holds in passing may be seen.
				p.model.ApplyWatched(o.Batch, h.note)
			case stepReopen:
				p.model = NewSource(p.conf, w.script.MaxOrphans, w.known)
			default:
				p.model.Clear()
			}
			h.note(p.model)
		}
		if !begun {
			h.begin(p.model)
		}
	}
	return out
}

// beside writes each source from a goroutine of its own, with readers beside them. No reader may see a source hold what
// it never held, nor less than it held all the time; and what the writers leave is what the models say.
func (w *world) beside() {
	for i := range w.script.Ops {
		if o := &w.script.Ops[i]; o.Kind == stepRestart {
			o.Kind = stepReset // a reader may ask between the two; that is not what is tested here
		}
	}
	ever := w.histories()
	for _, o := range w.script.Ops {
		if o.Early {
			w.tell(w.list[o.Source], o.step)
		}
	}
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for r := range uint64(2) {
		readers.Go(func() { w.watch(rand.New(rand.NewPCG(r, 99)), ever, stop) }) // stopped by stop, waited for below
	}
	for i, p := range w.list {
		writers.Go(func() { // ends with its part of the script; waited for below
			for _, o := range w.script.Ops {
				if o.Source == i && !o.Early {
					w.tell(p, o.step)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	for _, p := range w.list {
		w.counts(p)
	}
	asks := w.script.asks()
	for _, a := range asks[max(0, len(asks)-50):] {
		w.check(a)
	}
	w.finish()
}

// watch asks the script's prompts, whichever comes, at least one, until it is stopped.
func (w *world) watch(rng *rand.Rand, ever map[string]*history, stop <-chan struct{}) {
	reader, asks := w.x.NewReader(), w.script.asks()
	for len(asks) > 0 {
		w.look(reader, asks[rng.IntN(len(asks))], ever)
		select {
		case <-stop:
			return
		default:
		}
	}
}

// look asks one prompt in three ways.
func (w *world) look(reader *indexer.Reader, a ask, ever map[string]*history) {
	q, prompt := a.query(), NewPrompt(w.known, a.Query, a.KeySize)
	held := make(map[string]int)
	seen := func(m *indexer.Match) {
		id := m.Source.ID()
		held[id] = m.Held
		h := ever[id]
		if len(h.sizes) > 1 {
			return // its runs join blocks of several sizes
		}
		device, any := h.run(h.device, prompt, m.Source.PairKeys), h.run(h.any, prompt, m.Source.PairKeys)
		if m.Held > device || m.Reusable > device || m.With[events.TierUnknown] > any {
			w.fail("%s: held %d, reusable %d, ever %d; with all tiers %d, ever %d",
				id, m.Held, m.Reusable, device, m.With[events.TierUnknown], any)
		}
	}
	list, err := w.x.Lookup(context.Background(), q)
	for i := range list {
		seen(&list[i])
	}
	w.least("Lookup", err, held, a, prompt, ever)
	clear(held)
	list, err = reader.Lookup(context.Background(), &q)
	for i := range list {
		seen(&list[i])
	}
	w.least("Reader.Lookup", err, held, a, prompt, ever)
	clear(held)
	holders, err := reader.Holders(context.Background(), &q)
	for i := range holders {
		id, n, ok := holder(w.x, holders[i])
		if !ok {
			continue // closed meanwhile
		}
		h := ever[id]
		if most := h.run(h.device, prompt, h.pairs); n > most && len(h.sizes) == 1 {
			w.fail("%s: a holder of %d, ever %d", id, n, most)
		}
		held[id] = n
	}
	w.least("Holders", err, held, a, prompt, ever)
}

// least checks that no source was seen to hold less than it held all the time.
func (w *world) least(call string, err error, held map[string]int, a ask, prompt *Prompt, ever map[string]*history) {
	if err != nil {
		w.fail("%s: %v", call, err)
	}
	for _, conf := range w.script.Sources {
		h := ever[conf.ID()]
		if conf.Model != a.Model || len(h.always) == 0 || a.KeySize > 0 && (conf.PairKeys || a.KeySize != h.sizes[0]) {
			continue
		}
		if want := h.run(h.always, prompt, conf.PairKeys); held[conf.ID()] < want {
			w.fail("%s: %s held %d, at least %d all the time", call, conf.ID(), held[conf.ID()], want)
		}
	}
}

// sizes are the block sizes that a source of the script announces.
func (s *script) sizes(source int) (out []int) {
	known := make(map[int]bool)
	for _, o := range s.Ops {
		for _, e := range o.Batch.Events {
			if o.Source == source && e.BlockSize > 0 && !known[e.BlockSize] {
				known[e.BlockSize] = true
				out = append(out, e.BlockSize)
			}
		}
	}
	return out
}

// grouped says whether a source of the script names groups.
func (s *script) grouped(source int) bool {
	for _, o := range s.Ops {
		for _, e := range o.Batch.Events {
			if o.Source == source && e.HasGroup {
				return true
			}
		}
	}
	return false
}
