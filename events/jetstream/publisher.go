package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kvscout/kvscout/events"
)

// describeEvery is how many heartbeats pass before workers are described again, for replicas whose part of the log lacks
// the description.
const describeEvery = 5

// Publisher is an ingester: it puts what streams deliver into the log.
type Publisher struct {
	log *Log
	id  uint64
	// ctx is that of every goroutine but for what Close still has to say.
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
	n    publisherCounters

	wake chan struct{} // has room for one: workers changed

	mu      sync.Mutex // guards the fields below
	closed  bool
	sources map[string]*outbox // by events.Source.ID
	workers map[string][]byte  // their descriptions, by id
	gone    []string           // workers to be taken out
	fresh   []string           // workers to be described at once
	stored  map[string]bool    // workers whose present description is in the log
	// round counts calls of Members.
	round int
}

// NewPublisher starts an ingester. Close it.
func (l *Log) NewPublisher() *Publisher {
	p := &Publisher{
		log: l, id: rand.Uint64() | 1, wake: make(chan struct{}, 1),
		sources: make(map[string]*outbox), workers: make(map[string][]byte),
		stored: make(map[string]bool),
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.wg.Go(p.describe) // ends with ctx; Close waits for it
	return p
}

// Sink is where a stream of src delivers. A former sink of the same source is closed. Nothing of it is stored before Members
// has named its worker, and that is stored.
func (p *Publisher) Sink(src events.Source) events.Sink {
	b := newOutbox(p, src)
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.sources[src.ID()]; old != nil {
		old.end(false) // for the log it is the same ingester that goes on
	}
	if p.closed {
		b.end(false)
		return b
	}
	p.sources[src.ID()] = b
	p.wg.Go(b.run) // ends when the outbox is ended; Close waits for it
	return b
}

// Members says which workers there are now. Sources of workers that are gone are closed.
func (p *Publisher) Members(list []Member) {
	now := make(map[string][]byte, len(list))
	has := make(map[string]bool)
	for _, m := range list {
		body, err := json.Marshal(m)
		if err != nil || len(body) > maxMemberBytes || len(m.ID) > maxWorkerBytes || m.ID == "" {
			p.log.logger().Error("worker cannot be described to replicas", "worker", m.ID, "bytes", len(body), "error", err)
			p.n.refused.Add(1)
			continue
		}
		now[m.ID] = body
		for _, s := range m.Events() {
			has[s.ID()] = true
		}
	}
	p.mu.Lock()
	p.round++
	for id, body := range now {
		if !slices.Equal(p.workers[id], body) {
			p.fresh = append(p.fresh, id)
			delete(p.stored, id)
		}
	}
	for id := range p.workers {
		if now[id] == nil {
			p.gone = append(p.gone, id)
			delete(p.stored, id)
		}
	}
	p.workers = now
	var ended []*outbox
	for id, b := range p.sources {
		if !has[id] {
			ended = append(ended, b)
			delete(p.sources, id)
			continue
		}
		b.round = p.round
		if p.stored[b.src.Worker] {
			b.release()
		}
	}
	p.mu.Unlock()
	for _, b := range ended {
		b.end(true)
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// describe stores descriptions of workers: when they change, and again from time to time.
func (p *Publisher) describe() {
	tick := time.NewTicker(describeEvery * p.log.o.Heartbeat)
	defer tick.Stop()
	for {
		all := false
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
			all = true
		case <-p.wake:
		}
		p.mu.Lock()
		gone, fresh, round := p.gone, p.fresh, p.round
		p.gone, p.fresh = nil, nil
		bodies := make(map[string][]byte)
		for id, body := range p.workers {
			if all || slices.Contains(fresh, id) {
				bodies[id] = body
			}
		}
		p.mu.Unlock()
		for _, id := range gone {
			_ = p.put(p.ctx, workerSubject(p.log.prefix, id), p.record(kindGone, nil), "") // errs when Close ends it
		}
		for id, body := range bodies {
			if p.put(p.ctx, workerSubject(p.log.prefix, id), p.record(kindWorker, body), "") == nil {
				p.described(id, body, round)
			}
		}
	}
}

// described lets the sources of a worker go that were there when its description was made.
func (p *Publisher) described(id string, body []byte, round int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stored[id] = slices.Equal(p.workers[id], body)
	for _, b := range p.sources {
		if b.src.Worker == id && b.round > 0 && b.round <= round {
			b.release()
		}
	}
}

func (p *Publisher) record(k kind, body []byte) *record {
	return &record{kind: k, ingester: p.id, time: time.Now(), body: body}
}

const (
	storeTimeout = 5 * time.Second
	retryMin     = 50 * time.Millisecond
	retryMax     = 2 * time.Second
)

// errTooLarge is a record over what the server takes.
var errTooLarge = errors.New("record over the server's limit")

// put stores a record, however often it takes, until ctx ends. It errs with errTooLarge or ctx's error.
func (p *Publisher) put(ctx context.Context, subject string, r *record, id string) error {
	msg := &nats.Msg{Subject: subject, Data: r.append(nil), Header: nats.Header{}}
	if id != "" {
		msg.Header.Set(jetstream.MsgIDHeader, id)
	}
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		if limit := p.log.conn.MaxPayload(); limit > 0 && int64(msg.Size()) > limit {
			p.n.refused.Add(1)
			return fmt.Errorf("%w: %d bytes, limit %d", errTooLarge, msg.Size(), limit)
		}
		err := p.store(ctx, msg)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.n.failures.Add(1)
		p.log.logger().Warn("record is not stored, trying again", "subject", subject, "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (p *Publisher) store(ctx context.Context, msg *nats.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	ack, err := p.log.js.PublishMsg(ctx, msg)
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		_, err = p.log.stream(ctx)
		if err == nil {
			ack, err = p.log.js.PublishMsg(ctx, msg)
		}
	}
	if err != nil {
		return err
	}
	if ack.Duplicate {
		p.n.duplicates.Add(1)
	} else {
		p.n.stored.Add(1)
	}
	return nil
}

// Close says goodbye for every source, within the time of ctx, and ends every goroutine.
func (p *Publisher) Close(ctx context.Context) {
	p.mu.Lock()
	p.closed = true
	all := p.sources
	p.sources = nil
	p.mu.Unlock()
	for _, b := range all {
		b.end(true)
	}
	for _, b := range all {
		select {
		case <-b.done:
		case <-ctx.Done():
		}
	}
	p.stop()
	p.wg.Wait()
}
