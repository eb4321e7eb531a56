package stream

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// inboxInputs is the capacity of an inbox, of which messages take at most inboxMessages; the rest is for news of
	// connections, which therefore wait only when a thousand of them do.
	inboxInputs   = 2048
	inboxMessages = 1024
)

// input is one thing that a connection told.
type input struct {
	kind     inputKind
	conn     uint64
	err      error     // of inputDown
	frames   [][]byte  // of inputMessage
	received time.Time // of inputMessage
	weight   int64     // what it holds of the inbox's room
}

type inputKind uint8

const (
	inputUp inputKind = iota
	inputDown
	inputMessage
)

// inbox carries inputs from the goroutines of connections to the stream's own. It is a zmq.Handler. A full inbox
// blocks the connection, so that TCP slows the publisher down.
type inbox struct {
	// ctx is the stream's: when it ends nobody takes from the inbox any more, so nobody waits for room in it.
	ctx   context.Context
	ch    chan *input // of pointers: what waits is paid for, not what could
	limit int64
	room  *semaphore.Weighted // of limit bytes
}

func newInbox(ctx context.Context, bytes int) *inbox {
	return &inbox{
		ctx: ctx, ch: make(chan *input, inboxInputs),
		limit: int64(bytes), room: semaphore.NewWeighted(int64(bytes)),
	}
}

// Connected implements zmq.Handler.
func (b *inbox) Connected(conn uint64, _ string) { b.put(&input{kind: inputUp, conn: conn}) }

// Disconnected implements zmq.Handler. Attempts that failed are told only if there is room: they matter to people.
func (b *inbox) Disconnected(conn uint64, err error) {
	in := &input{kind: inputDown, conn: conn, err: err}
	if conn != 0 {
		b.put(in)
		return
	}
	select {
	case b.ch <- in:
	default:
	}
}

// Message implements zmq.Handler.
func (b *inbox) Message(conn uint64, frames [][]byte) {
	in := &input{kind: inputMessage, conn: conn, frames: frames, received: time.Now()}
	size := 0
	for _, f := range frames {
		size += len(f)
	}
	// A small message counts as its share of the inbox, a message larger than the inbox as all of it.
	in.weight = min(max(int64(size), b.limit/inboxMessages, 1), b.limit)
	if b.room.Acquire(b.ctx, in.weight) == nil {
		b.put(in)
	}
}

func (b *inbox) put(in *input) {
	select {
	case b.ch <- in:
	case <-b.ctx.Done():
	}
}

// took gives the room of an input back.
func (b *inbox) took(in *input) {
	if in.weight > 0 {
		b.room.Release(in.weight)
	}
}
