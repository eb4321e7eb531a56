package stream

import (
	"time"

	"github.com/kvscout/kvscout/events"
)

// live is a message of the live stream that waits for its turn.
type live struct {
	events.Message
	conn     uint64
	received time.Time
	// first: it is the first that its connection brought. rose: its number is above the one before it on its
	// connection. Numbers of one publisher life only rise.
	first, rose bool
}

// held is the queue of live messages in order of arrival. Over its limits it drops the oldest: the replay that they
// wait for brings those first.
type held struct {
	maxMessages, maxBytes int
	queue                 []live // from head on
	head                  int
	bytes                 int
}

func (h *held) len() int { return len(h.queue) - h.head }

// push adds m and returns how many messages it pushed out.
func (h *held) push(m live) (dropped int) {
	h.queue = append(h.queue, m)
	h.bytes += m.weight()
	for h.len() > 1 && (h.len() > h.maxMessages || h.bytes > h.maxBytes) {
		h.pop()
		dropped++
	}
	return dropped
}

// front is the oldest message, nil if there is none.
func (h *held) front() *live {
	if h.len() == 0 {
		return nil
	}
	return &h.queue[h.head]
}

func (h *held) pop() live {
	m := h.queue[h.head]
	h.queue[h.head] = live{}
	h.head++
	h.bytes -= m.weight()
	if h.head > len(h.queue)/2 { // keeps the array in proportion to what it holds, at constant cost per message
		n := copy(h.queue, h.queue[h.head:])
		clear(h.queue[n:])
		h.queue, h.head = h.queue[:n], 0
	}
	return m
}

// filter keeps the messages that keep says true of and returns how many went.
func (h *held) filter(keep func(live) bool) (gone int) {
	for range h.len() {
		m := h.pop()
		if keep(m) {
			h.queue = append(h.queue, m)
			h.bytes += m.weight()
		} else {
			gone++
		}
	}
	return gone
}

func (m *live) weight() int { return len(m.Topic) + len(m.Epoch) + len(m.Payload) + 8 }
