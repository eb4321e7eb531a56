package zmq

import (
	"fmt"
	"time"
)

// freeBytes is how much of one message a connection may hold without asking the budget: more than nearly all messages
// have.
const freeBytes = bufferSize

// message reads one message. Memory follows the bytes that came, not those that a header claims: what is over freeBytes
// is taken from the budget of all connections as it comes, until the message is whole.
func (g *guard) message() (frames [][]byte, err error) {
	m := partial{g: g}
	defer func() {
		g.begun = time.Time{}
		g.lim.budget.give(m.taken)
	}()
	for more := true; more; {
		flags, header, size, err := g.nextFrame()
		if err != nil {
			return nil, err
		}
		if len(frames) == 0 {
			g.begun = time.Now()
		}
		if err := m.admit(len(frames)+1, size); err != nil {
			return nil, err
		}
		if _, err := g.br.Discard(header); err != nil {
			return nil, err
		}
		body, err := m.frame(int(size))
		if err != nil {
			return nil, err
		}
		frames = append(frames, body)
		more = flags&flagMore != 0
	}
	return frames, nil
}

// partial is a message that is being read.
type partial struct {
	g *guard
	// bytes it claims so far; held of them by us, taken of those from the budget.
	bytes       uint64
	held, taken int64
}

// admit checks a frame against the limits.
func (m *partial) admit(frames int, size uint64) error {
	lim := m.g.lim
	if size > uint64(lim.frame) {
		return fmt.Errorf("%w: %d bytes, limit %d", ErrFrameTooLarge, size, lim.frame)
	}
	m.bytes += size
	if frames > lim.frames || m.bytes > uint64(lim.message) {
		return fmt.Errorf("%w: %d frames and %d bytes, limits %d and %d", ErrMessageTooLarge, frames, m.bytes, lim.frames,
			lim.message)
	}
	return nil
}

// frame reads a body of size bytes into a buffer that doubles as they come.
func (m *partial) frame(size int) ([]byte, error) {
	body := make([]byte, 0, min(size, freeBytes))
	if err := m.hold(cap(body)); err != nil {
		return nil, err
	}
	for len(body) < size {
		if len(body) == cap(body) {
			grown := min(size, 2*cap(body))
			if err := m.hold(grown); err != nil { // the old buffer counts until the message is whole
				return nil, err
			}
			body = append(make([]byte, 0, grown), body...)
		}
		n, err := m.g.some(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err != nil {
			return nil, err
		}
	}
	return body, nil
}

// hold counts n bytes more. It errs with ErrFull when the budget has no room for them.
func (m *partial) hold(n int) error {
	m.held += int64(n)
	if over := m.held - freeBytes - m.taken; over > 0 {
		if !m.g.lim.budget.take(over) {
			return fmt.Errorf("%w: unfinished messages of all connections fill %d bytes", ErrFull, m.g.lim.budget.limit)
		}
		m.taken += over
	}
	return nil
}
