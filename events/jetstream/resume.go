package jetstream

import "github.com/kvscout/kvscout/events"

// Life is how an ingester names the life of an engine, so that another process of it may go on under the same name.
type Life struct {
	// Epoch is the name, 0 before the first message.
	Epoch uint64 `json:"epoch,omitempty"`
	// Base is what the last name was made of that was made of a message, and Repeats how often that came again.
	Base    uint64 `json:"base,omitempty"`
	Repeats uint64 `json:"repeats,omitempty"`
}

// Resumable is what a Publisher's Sink is, for streams that go on behind a cursor (stream.Stream.Resume).
type Resumable interface {
	// Life is that of the messages applied so far. It may be called from any goroutine; who gets the same before and after
	// reading what the stream's other sinks hold knows that it is the life of that.
	Life() Life
	// Resume goes on in a life, behind the message of the cursor. It is to be called before anything is delivered.
	Resume(l Life, c events.Cursor)
}

// Life implements Resumable.
func (b *outbox) Life() Life {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.life
}

// Resume implements Resumable.
func (b *outbox) Resume(l Life, c events.Cursor) {
	b.lives.epoch, b.lives.base, b.lives.repeats = l.Epoch, l.Base, l.Repeats
	b.sum, b.heard = c.Sum, true
	b.change(func() {
		b.life = l
		b.now.epoch, b.now.seq, b.now.hasSeq, b.dirty = l.Epoch, c.Seq, true, true
	})
}
