package chaos

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fault is what a proxy does to the next message from the engine.
type fault int32

const (
	faultNone     fault = iota
	faultLose           // the message never arrives
	faultFlags          // the header has reserved flags
	faultLength         // the header claims 2^62 bytes
	faultTopic          // the topic is another
	faultSequence       // a bit of the sequence number is flipped
	faultTorn           // the connection ends in the middle of the message
	faultCount
)

// proxy stands before one socket of an engine.
type proxy struct {
	listener net.Listener
	target   string
	replay   bool // it stands before a replay socket
	wg       sync.WaitGroup
	next     atomic.Int32 // fault
	stalled  atomic.Int64 // Unix nanoseconds until which nothing passes
	refuse   atomic.Int64 // Unix nanoseconds until which nobody gets in
	bit      atomic.Uint32

	mu     sync.Mutex // guards conns and closed
	conns  map[net.Conn]bool
	closed bool
}

func newProxy(t *testing.T, endpoint string, replay bool) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, replay: replay, target: strings.TrimPrefix(endpoint, "tcp://"), conns: make(map[net.Conn]bool)}
	p.wg.Go(p.accept) // ended by close, which waits for it
	return p
}

func (p *proxy) endpoint() string { return "tcp://" + p.listener.Addr().String() }

func (p *proxy) close() {
	p.listener.Close()
	p.calm()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cut()
	p.wg.Wait()
}

// calm ends what is going on.
func (p *proxy) calm() {
	p.next.Store(int32(faultNone))
	p.stalled.Store(0)
	p.refuse.Store(0)
}

// cut ends every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// keep notes an open connection, unless the proxy is closed.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *proxy) drop(c net.Conn) {
	c.Close()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

func (p *proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		if time.Now().UnixNano() < p.refuse.Load() {
			near.Close()
			continue
		}
		p.wg.Go(func() { p.serve(near) }) // ends with its connections
	}
}

func (p *proxy) serve(near net.Conn) {
	far, err := net.Dial("tcp", p.target)
	if err != nil {
		near.Close()
		return
	}
	defer p.drop(near)
	defer p.drop(far)
	if !p.keep(near) || !p.keep(far) {
		return
	}
	done := make(chan struct{})
	p.wg.Go(func() { // ends when far closes, below or by cut
		defer close(done)
		p.fromEngine(near, far)
		near.Close()
		far.Close()
	})
	p.toEngine(far, near)
	near.Close()
	far.Close()
	<-done
}

// wait holds up while the proxy is stalled.
func (p *proxy) wait() {
	for {
		left := time.Until(time.Unix(0, p.stalled.Load()))
		if left <= 0 {
			return
		}
		time.Sleep(min(left, 5*time.Millisecond)) // calm may end it at any time
	}
}

func (p *proxy) toEngine(far, near net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := near.Read(buf)
		p.wait()
		if _, e := far.Write(buf[:n]); e != nil || err != nil {
			return
		}
	}
}

// fromEngine passes the handshake and then message by message.
func (p *proxy) fromEngine(near, far net.Conn) {
	in := bufio.NewReader(far)
	greeting := make([]byte, 64)
	if _, err := io.ReadFull(in, greeting); err != nil {
		return
	}
	if _, err := near.Write(greeting); err != nil {
		return
	}
	for n := 0; ; {
		frames, command, err := readMessage(in)
		if err != nil {
			return
		}
		p.wait()
		f := faultNone
		if !command {
			f = fault(p.next.Swap(int32(faultNone)))
			n++
		}
		if p.replay && n == 1 && (f == faultLose || f == faultSequence || f == faultTopic) {
			f = faultNone // a ROUTER drops at its high-water mark, never the first message of an answer
		}
		out, last := p.spoil(frames, f)
		if _, err := near.Write(out); err != nil || last {
			return
		}
	}
}

// spoil writes out the frames of a message, each with its header, with fault f. last says that the connection ends there.
func (p *proxy) spoil(frames [][]byte, f fault) (out []byte, last bool) {
	first := frames[0]
	switch f {
	case faultLose:
		return nil, false
	case faultFlags:
		first[0] |= 0xf8
	case faultLength:
		first = binary.BigEndian.AppendUint64([]byte{2}, 1<<62)
	case faultTopic:
		first = []byte{1, 5, 'o', 't', 'h', 'e', 'r'}
	case faultSequence:
		for _, frame := range frames {
			if len(frame) == 10 && frame[1] == 8 { // short header, 8 bytes
				frame[2+int(p.bit.Add(1)%8)] ^= 1 << (p.bit.Load() % 5)
				break
			}
		}
	}
	out = append(out, first...)
	for _, frame := range frames[1:] {
		out = append(out, frame...)
	}
	if f == faultTorn {
		return out[:len(out)/2], true
	}
	return out, false
}

// readMessage reads the frames of one message or a command, headers included. The peers are ours, so lengths are trusted.
func readMessage(in *bufio.Reader) (frames [][]byte, command bool, err error) {
	for more := true; more; {
		head, err := in.Peek(2)
		if err != nil {
			return nil, false, err
		}
		n, size := 2, int(head[1])
		if head[0]&2 != 0 {
			if head, err = in.Peek(9); err != nil {
				return nil, false, err
			}
			n, size = 9, int(binary.BigEndian.Uint64(head[1:]))
		}
		more, command = head[0]&1 != 0, head[0]&4 != 0
		frame := make([]byte, n+size)
		if _, err := io.ReadFull(in, frame); err != nil {
			return nil, false, err
		}
		frames = append(frames, frame)
	}
	return frames, command, nil
}
