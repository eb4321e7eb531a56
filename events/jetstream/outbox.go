package jetstream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/kvscout/kvscout/events"
)

// maxWhy bounds the text of an error that a state is told with.
const maxWhy = 256

// outbox is the events.Sink of one source: what it is told waits here until it is stored. Its methods return at once.
type outbox struct {
	p       *Publisher
	src     events.Source
	subject string
	wake    chan struct{} // has room for one
	done    chan struct{} // closed when run has ended
	ready   chan struct{} // closed by release
	release func()
	round   int // of the Publisher, when Members last named the source; 0 before. Guarded by Publisher.mu.

	// What is known of the stream, for the goroutine that feeds the sink only.
	lives lives
	sum   uint64
	heard bool // a message of this life

	mu    sync.Mutex // guards the fields below
	queue []item
	bytes int
	ended bool
	life  Life
	now   record // the state to be told: state, body, epoch, seq, complete
	dirty bool   // now was not told since it changed
}

// item is a record that waits, with its Nats-Msg-Id.
type item struct {
	record
	id string
}

func newOutbox(p *Publisher, src events.Source) *outbox {
	ready := make(chan struct{})
	return &outbox{
		ready: ready, release: sync.OnceFunc(func() { close(ready) }),
		p: p, src: src, subject: sourceSubject(p.log.prefix, src.Worker, src.Rank),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		lives: lives{random: rand.Uint64, drained: drainedSource(src)},
		now:   record{kind: kindState, ingester: p.id},
	}
}

// change changes what waits, under mu, and wakes the goroutine that stores it.
func (b *outbox) change(do func()) {
	b.mu.Lock()
	do()
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Apply implements events.Sink.
func (b *outbox) Apply(seq uint64, payload []byte, received time.Time) {
	first := b.lives.epoch == 0 && b.lives.complete
	r := record{
		kind: kindMessage, ingester: b.p.id, epoch: b.lives.of(seq, payload), seq: seq, hasSeq: true, complete: first,
		link: b.sum, linked: b.heard, time: received, body: append([]byte(nil), payload...),
	}
	b.sum, b.heard = xxhash.Sum64(payload), true
	id := fmt.Sprintf("%s:%x:%d", b.subject, r.epoch, seq)
	b.change(func() {
		b.now.epoch, b.now.seq, b.now.hasSeq = r.epoch, seq, true
		b.life = Life{r.epoch, b.lives.base, b.lives.repeats}
		if b.ended {
			return
		}
		if size := headBytes + len(payload); len(b.queue) > 0 && b.bytes+size > b.p.log.o.QueueBytes {
			b.p.n.dropped.Add(1) // the next number stored, or the next state told, shows the hole
			b.dirty = true
			return
		}
		b.push(item{r, id})
	})
}

// push adds an item. Needs mu.
func (b *outbox) push(it item) {
	b.queue = append(b.queue, it)
	b.bytes += headBytes + len(it.body)
}

// Reset implements events.Sink.
func (b *outbox) Reset() {
	b.heard = false
	b.change(func() {
		b.now.epoch, b.now.seq, b.now.hasSeq, b.now.complete = 0, 0, false, false
		b.life.Epoch = 0
		if !b.ended {
			b.push(item{record: record{kind: kindReset, ingester: b.p.id, time: time.Now()}})
		}
	})
	b.lives.begin(false)
}

// Joined implements events.Sink. After a Gap it tells nothing new: the numbers show the hole.
func (b *outbox) Joined(_ uint64, complete bool) {
	if b.lives.epoch != 0 {
		b.heard = false
		return
	}
	b.lives.begin(complete)
	b.change(func() { b.now.complete, b.dirty = complete, true })
}

// Gap implements events.Sink: everything up to number to was heard or is lost.
func (b *outbox) Gap(_, to uint64) {
	b.change(func() {
		if b.now.epoch != 0 {
			b.now.seq, b.now.hasSeq, b.dirty = to, true, true
		}
	})
}

// State implements events.Sink.
func (b *outbox) State(s events.State, why error) {
	text := ""
	if why != nil {
		text = why.Error()
	}
	b.change(func() {
		b.now.state, b.now.body, b.dirty = s, []byte(text[:min(len(text), maxWhy)]), true
	})
}

// Reject implements events.Sink. What an ingester did not take shows in its own statistics.
func (b *outbox) Reject(events.Reason) {}

// Replayed implements events.Sink.
func (b *outbox) Replayed(int) {}

// end says that nothing more will come, and whether the log is to be told.
func (b *outbox) end(goodbye bool) {
	b.change(func() {
		b.ended = true
		if !goodbye {
			b.queue, b.dirty, b.now.kind = nil, false, kindClosed
		}
	})
}

// run stores what waits, and the state when it changed or was not told for a while.
func (b *outbox) run() {
	defer close(b.done)
	for waiting := true; waiting; {
		select {
		case <-b.ready:
			waiting = false
			b.change(func() {}) // what came meanwhile
		case <-b.p.ctx.Done():
			return
		case <-b.wake:
			if b.over() {
				return
			}
		}
	}
	beat := time.NewTicker(b.p.log.o.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-b.p.ctx.Done():
			return
		case <-b.wake:
		case <-beat.C:
			b.mu.Lock()
			b.dirty = true
			b.mu.Unlock()
		}
		for {
			it, ok, ended := b.next()
			if !ok {
				if ended {
					return
				}
				break
			}
			err := b.p.put(b.p.ctx, b.subject, &it.record, it.id)
			if errors.Is(err, errTooLarge) {
				b.p.log.logger().Error("record is too large for the log", "source", b.src.ID(), "error", err)
				b.mu.Lock()
				b.dirty = true // shows the hole
				b.mu.Unlock()
			} else if err != nil {
				return
			}
		}
	}
}

// over says whether the source was ended.
func (b *outbox) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// next takes what is to be stored next: what waits in order, then the state, and in the end the goodbye.
func (b *outbox) next() (it item, ok, ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.queue) > 0:
		it = b.queue[0]
		b.queue[0] = item{}
		b.queue = b.queue[1:]
		b.bytes -= headBytes + len(it.body)
		return it, true, false
	case b.dirty:
		b.dirty = false
		b.now.time = time.Now()
		return item{record: b.now}, true, false
	case b.ended && b.now.kind != kindClosed:
		b.now.kind = kindClosed
		return item{record: record{kind: kindClosed, ingester: b.p.id, time: time.Now()}}, true, false
	default:
		return item{}, false, b.ended
	}
}
