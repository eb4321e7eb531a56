package zmq

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

const (
	greetingSize = 64
	bufferSize   = 64 << 10
	// maxCommand bounds a command's body. A READY carries a socket type and an identity of at most 255 bytes; it must
	// fit the buffer with its header.
	maxCommand = 8 << 10

	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// guard is the net.Conn that zmq4 reads. It hands over the greeting, the commands of the handshake, and then the
// frames of messages, each only after its header was checked against the limits. It is used by one goroutine; only
// Close may come from another.
type guard struct {
	net.Conn
	br  *bufio.Reader
	lim limits

	// greetBy is the end of the time for the handshake.
	greetBy time.Time
	// opened says that the handshake is over: commands end here and silence is probed.
	opened bool
	// pass is how many bytes of the greeting or of the current frame, header included, zmq4 may still read.
	pass uint64
	// frames and bytes measure the message so far.
	frames int
	bytes  uint64
	// probes counts heartbeats sent since the peer was last heard.
	probes int
}

func newGuard(c net.Conn, lim limits) *guard {
	return &guard{
		Conn: c, br: bufio.NewReaderSize(c, bufferSize), lim: lim,
		greetBy: time.Now().Add(lim.handshake), pass: greetingSize,
	}
}

// Read implements net.Conn.
func (g *guard) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if g.pass == 0 {
		if err := g.nextFrame(); err != nil {
			return 0, err
		}
	}
	if _, err := g.peek(1); err != nil {
		return 0, err
	}
	n, err := g.br.Read(p[:min(uint64(len(p)), g.pass)])
	g.pass -= uint64(n)
	return n, err
}

// Write implements net.Conn. A peer that takes no bytes does not hold the reader up for ever.
func (g *guard) Write(p []byte) (int, error) {
	if err := g.SetWriteDeadline(time.Now().Add(g.lim.handshake)); err != nil {
		return 0, err
	}
	return g.Conn.Write(p)
}

// nextFrame reads headers until one belongs to a frame that zmq4 is to see, and lets that frame pass.
func (g *guard) nextFrame() error {
	for {
		flags, header, size, err := g.header()
		if err != nil {
			return err
		}
		if flags&flagCommand == 0 {
			return g.admit(flags, header, size)
		}
		if flags&flagMore != 0 {
			return fmt.Errorf("%w: command with more frames", ErrProtocol)
		}
		if size > maxCommand {
			return fmt.Errorf("%w: command of %d bytes, limit %d", ErrFrameTooLarge, size, maxCommand)
		}
		if !g.opened {
			g.pass = uint64(header) + size
			return nil
		}
		if err := g.command(header, int(size)); err != nil {
			return err
		}
	}
}

// header peeks at the header of the next frame: its flags, its own length and the length of the body.
func (g *guard) header() (flags byte, length int, size uint64, err error) {
	h, err := g.peek(2)
	if err != nil {
		return 0, 0, 0, err
	}
	flags = h[0]
	if flags&^(flagMore|flagLong|flagCommand) != 0 {
		return 0, 0, 0, fmt.Errorf("%w: frame flags %#x", ErrProtocol, flags)
	}
	if flags&flagLong == 0 {
		return flags, 2, uint64(h[1]), nil
	}
	if h, err = g.peek(9); err != nil {
		return 0, 0, 0, err
	}
	return flags, 9, binary.BigEndian.Uint64(h[1:]), nil
}

// admit lets a message frame pass if it and its message are within the limits.
func (g *guard) admit(flags byte, header int, size uint64) error {
	if !g.opened {
		return fmt.Errorf("%w: message before the handshake ended", ErrProtocol)
	}
	if size > uint64(g.lim.frame) {
		return fmt.Errorf("%w: %d bytes, limit %d", ErrFrameTooLarge, size, g.lim.frame)
	}
	g.frames++
	g.bytes += size
	if g.frames > g.lim.frames || g.bytes > uint64(g.lim.message) {
		return fmt.Errorf("%w: %d frames and %d bytes, limits %d and %d", ErrMessageTooLarge, g.frames, g.bytes,
			g.lim.frames, g.lim.message)
	}
	if flags&flagMore == 0 {
		g.frames, g.bytes = 0, 0
	}
	g.pass = uint64(header) + size
	return nil
}

// command takes one command out of the stream. A PING is answered with its context, as ZMTP 3.1 asks; any other byte
// is proof enough that the peer lives.
func (g *guard) command(header, size int) error {
	b, err := g.peek(header + size)
	if err != nil {
		return err
	}
	body := b[header:]
	if len(body) >= 7 && string(body[:5]) == "\x04PING" {
		err = g.sendCommand("PONG", body[7:])
	}
	if _, e := g.br.Discard(header + size); e != nil {
		return e
	}
	return err
}

// sendCommand writes a command in one piece.
func (g *guard) sendCommand(name string, data []byte) error {
	size := 1 + len(name) + len(data)
	b := []byte{flagCommand, byte(size)}
	if size > 255 {
		b = binary.BigEndian.AppendUint64([]byte{flagCommand | flagLong}, uint64(size))
	}
	b = append(b, byte(len(name)))
	b = append(b, name...)
	_, err := g.Write(append(b, data...))
	return err
}

// peek waits until n bytes are buffered. While it waits after the handshake it sends heartbeats, from the reading
// goroutine; it errs with ErrSilent when they stay unanswered.
func (g *guard) peek(n int) ([]byte, error) {
	for {
		had := g.br.Buffered()
		if had >= n {
			return g.br.Peek(n)
		}
		until := g.greetBy
		if g.opened {
			until = time.Now().Add(g.lim.idle)
		}
		if err := g.SetReadDeadline(until); err != nil {
			return nil, err
		}
		b, err := g.br.Peek(n)
		if g.br.Buffered() > had {
			g.probes = 0
		}
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return b, err
		}
		if err := g.probe(); err != nil {
			return nil, err
		}
	}
}

// probe sends a heartbeat, or errs when enough have gone unanswered.
func (g *guard) probe() error {
	if !g.opened {
		return fmt.Errorf("%w: handshake took over %v", ErrSilent, g.lim.handshake)
	}
	if g.probes >= g.lim.probes {
		return fmt.Errorf("%w: nothing heard in %v, %d probes unanswered", ErrSilent,
			g.lim.idle*time.Duration(g.probes+1), g.probes)
	}
	g.probes++
	return g.sendCommand("PING", []byte{0, 0}) // time to live 0: the peer need not time us out
}
