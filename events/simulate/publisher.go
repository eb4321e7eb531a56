package simulate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/kvscout/kvscout/events"
)

// publisher is one process life's event stream: a PUB socket, a replay buffer and, when asked for, a ROUTER socket.
type publisher struct {
	topic       string
	replayTopic bool
	log         *slog.Logger
	count       *counters
	pub         *socket
	router      *socket // nil without a replay endpoint

	mu     sync.Mutex // guards the fields below; taken before any lock of a socket or peer
	next   uint64     // sequence number of the next batch
	buffer []batch    // ring of the last steps batches: number n lies at n modulo steps
	steps  int
}

// batch is a published batch.
type batch struct {
	seq     uint64
	payload []byte
}

// newPublisher binds the endpoints.
func newPublisher(c Config, count *counters) (*publisher, error) {
	p := &publisher{
		topic: c.Topic, replayTopic: formTraits[c.Form].replayTopic, log: c.Logger, count: count, steps: c.BufferSteps,
	}
	p.pub = &socket{
		kind: "PUB", accepts: []string{"SUB", "XSUB"}, log: c.Logger, count: count,
		handle: func(peer *peer, frames [][]byte) error { return peer.subscription(frames) },
	}
	if err := p.pub.bind(c.Events); err != nil {
		return nil, err
	}
	if c.Replay == "" {
		return p, nil
	}
	p.router = &socket{
		kind: "ROUTER", accepts: []string{"DEALER", "REQ", "ROUTER"}, log: c.Logger, count: count, handle: p.request,
	}
	if err := p.router.bind(c.Replay); err != nil {
		return nil, errors.Join(err, p.pub.close())
	}
	return p, nil
}

func sequenceFrame(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// publish sends a payload to every subscriber of its topic and keeps it for replays.
func (p *publisher) publish(payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := batch{seq: p.next, payload: payload}
	p.next++
	if len(p.buffer) < p.steps {
		p.buffer = append(p.buffer, b)
	} else {
		p.buffer[b.seq%uint64(p.steps)] = b
	}
	m := newMessage(payload, []byte(p.topic), sequenceFrame(b.seq))
	p.pub.each(func(to *peer) {
		if to.wants(p.topic) {
			p.deliver(to, m)
		}
	})
	p.count.published.Add(1)
}

// deliver queues m for a peer; one that is too far behind is cut off.
func (p *publisher) deliver(to *peer, m message) bool {
	err := to.send(m)
	if errors.Is(err, errBehind) {
		p.count.cutOff.Add(1)
		p.log.Warn("simulate: peer cut off", "error", err)
	}
	return err == nil
}

// request answers a replay request: an empty frame and a start sequence, as a DEALER sends them itself and a REQ by
// nature. Any other request gets no answer, as with the engines.
func (p *publisher) request(from *peer, frames [][]byte) error {
	if len(frames) != 2 || len(frames[0]) != 0 || len(frames[1]) > 8 {
		p.count.badRequests.Add(1)
		p.log.Warn("simulate: invalid replay request", "frames", len(frames))
		return nil
	}
	p.count.replays.Add(1)
	var start uint64
	for _, b := range frames[1] { // engines read an empty frame as 0 (recorded from SGLang)
		start = start<<8 | uint64(b)
	}
	for _, b := range p.since(start) {
		if !p.deliver(from, p.reply([]byte(p.topic), b)) {
			return nil // the reader sees the end of the connection
		}
	}
	p.deliver(from, p.reply(nil, batch{seq: events.EndSequence}))
	return nil
}

// reply is a replay reply in the form's layout.
func (p *publisher) reply(topic []byte, b batch) message {
	if p.replayTopic {
		return newMessage(b.payload, nil, topic, sequenceFrame(b.seq))
	}
	return newMessage(b.payload, nil, sequenceFrame(b.seq))
}

// since returns the buffered batches from start on, in order.
func (p *publisher) since(start uint64) []batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.next - uint64(len(p.buffer))
	var out []batch
	for n := max(start, first); n < p.next; n++ {
		out = append(out, p.buffer[n%uint64(p.steps)])
	}
	return out
}

// last is the number of the last batch; false before the first.
func (p *publisher) last() (uint64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == 0 {
		return 0, false
	}
	return p.next - 1, true
}

// subscribers is how many peers would get a batch now.
func (p *publisher) subscribers() int {
	n := 0
	p.pub.each(func(to *peer) {
		if to.wants(p.topic) {
			n++
		}
	})
	return n
}

func (p *publisher) close() error {
	err := p.pub.close()
	if p.router != nil {
		err = errors.Join(err, p.router.close())
	}
	if err != nil {
		return fmt.Errorf("close publisher: %w", err)
	}
	return nil
}
