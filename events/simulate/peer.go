package simulate

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// Limits on what is kept for one peer. The first is vLLM's high-water mark.
const (
	maxQueued      = 100_000
	maxQueuedBytes = 256 << 20
	maxTopics      = 1024
	flushTime      = time.Second // engines flush this long when they shut down
)

// errBehind is a peer that reads too slowly.
var errBehind = errors.New("peer is too far behind")

// peer is one connection. Reading is done by the goroutine that serves it, all writing by its own writer goroutine, so
// that publishing never waits for a peer.
type peer struct {
	conn net.Conn
	in   *bufio.Reader
	wake chan struct{} // one element: the queue changed, or closing is set
	done chan struct{} // closed when the writer has ended

	mu      sync.Mutex // guards the fields below
	queue   []message
	bytes   int // of queue
	closing bool
	topics  map[string]int // subscriptions and how often each was made
}

func newPeer(conn net.Conn, in *bufio.Reader) *peer {
	return &peer{conn: conn, in: in, wake: make(chan struct{}, 1), done: make(chan struct{}), topics: make(map[string]int)}
}

// send queues m. It errs with errBehind and ends the connection when too much waits already (invariant 6).
func (p *peer) send(m message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return net.ErrClosed
	}
	if len(p.queue) >= maxQueued || p.bytes+m.size() > maxQueuedBytes {
		p.closing, p.queue, p.bytes = true, nil, 0
		p.signal()
		_ = p.conn.Close() // ends the writer and the reader
		return fmt.Errorf("%w: %s", errBehind, p.conn.RemoteAddr())
	}
	p.queue = append(p.queue, m)
	p.bytes += m.size()
	p.signal()
	return nil
}

// signal wakes the writer. The caller holds mu.
func (p *peer) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// write sends what is queued until the connection fails or the peer is closing and nothing is left.
func (p *peer) write() {
	defer close(p.done)
	for range p.wake {
		p.mu.Lock()
		batch, closing := p.queue, p.closing
		p.queue, p.bytes = nil, 0
		p.mu.Unlock()
		var buffers net.Buffers
		for _, m := range batch {
			buffers = append(buffers, m.head)
			if len(m.payload) > 0 {
				buffers = append(buffers, m.payload)
			}
		}
		if _, err := buffers.WriteTo(p.conn); err != nil {
			_ = p.conn.Close() // ends the reader
			return
		}
		if closing {
			return
		}
	}
}

// close flushes what is queued for at most flushTime, then ends the connection. It returns when the writer has ended.
func (p *peer) close() {
	_ = p.conn.SetDeadline(time.Now().Add(flushTime)) // of a dead connection: the writer ends all the same
	p.mu.Lock()
	p.closing = true
	p.signal()
	p.mu.Unlock()
	<-p.done
	_ = p.conn.Close()
}

// command handles what is not a message: PING is answered, SUBSCRIBE and CANCEL are those of ZMTP 3.1.
func (p *peer) command(body []byte) error {
	if len(body) == 0 || len(body) < 1+int(body[0]) {
		return fmt.Errorf("%w: command without a name", errZMTP)
	}
	name, rest := string(body[1:1+body[0]]), body[1+body[0]:]
	switch name {
	case "PING": // two bytes of time to live, then a context to send back
		return p.send(newCommand("PONG", rest[min(2, len(rest)):]))
	case "SUBSCRIBE":
		return p.subscribe(string(rest), 1)
	case "CANCEL":
		return p.subscribe(string(rest), -1)
	}
	return nil // PONG, ERROR and commands to come need no answer
}

// subscription handles the message form of ZMTP 3.0: 1 or 0 and a topic.
func (p *peer) subscription(frames [][]byte) error {
	if len(frames) != 1 || len(frames[0]) == 0 || frames[0][0] > 1 {
		return fmt.Errorf("%w: message of %d frames is no subscription", errZMTP, len(frames))
	}
	topic := string(frames[0][1:])
	if frames[0][0] == 0 {
		return p.subscribe(topic, -1)
	}
	return p.subscribe(topic, 1)
}

func (p *peer) subscribe(topic string, by int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.topics[topic] + by
	switch {
	case n <= 0:
		delete(p.topics, topic)
		return nil
	case p.topics[topic] == 0 && len(p.topics) >= maxTopics:
		return fmt.Errorf("%w: more than %d subscriptions", errZMTP, maxTopics)
	}
	p.topics[topic] = n
	return nil
}

// wants says whether a subscription is a prefix of topic.
func (p *peer) wants(topic string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for prefix := range p.topics {
		if strings.HasPrefix(topic, prefix) {
			return true
		}
	}
	return false
}

// read hands messages to handle until the connection ends, and returns why it ended.
func (p *peer) read(handle func(*peer, [][]byte) error) error {
	for {
		frames, command, err := readMessage(p.in)
		switch {
		case err != nil:
			return err
		case command:
			err = p.command(frames[0])
		default:
			err = handle(p, frames)
		}
		if err != nil {
			return err
		}
	}
}
