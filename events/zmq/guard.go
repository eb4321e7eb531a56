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

// guard is the net.Conn over which zmq4 makes the handshake, and reads the messages after it. Every header is checked
// against the limits before anything is done for what it claims. It is used by one goroutine; only Close may come from
// another.
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
	// begun is when the message being read began, zero between messages.
	begun time.Time
	// probes counts heartbeats sent since the peer was last heard.
	probes int
}

func newGuard(c net.Conn, lim limits) *guard {
	return &guard{
		Conn: c, br: bufio.NewReaderSize(c, bufferSize), lim: lim,
		greetBy: time.Now().Add(lim.handshake), pass: greetingSize,
	}
}

// Read implements net.Conn, for zmq4 and the handshake.
func (g *guard) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if g.pass == 0 {
		_, header, size, err := g.nextFrame()
		if err != nil {
			return 0, err
		}
		g.pass = uint64(header) + size
	}
	n, err := g.some(p[:min(uint64(len(p)), g.pass)])
	g.pass -= uint64(n)
	return n, err
}

// some reads what there is, at least one byte.
func (g *guard) some(p []byte) (int, error) {
	if _, err := g.peek(1); err != nil {
		return 0, err
	}
	return g.br.Read(p)
}

// Write implements net.Conn. A peer that takes no bytes does not hold the reader up for ever.
func (g *guard) Write(p []byte) (int, error) {
	if err := g.SetWriteDeadline(time.Now().Add(g.lim.handshake)); err != nil {
		return 0, err
	}
	return g.Conn.Write(p)
}

// nextFrame reads headers until one belongs to a frame that is not ours to handle: a command of the handshake, or a frame
// of a message after it. The header stays unread.
func (g *guard) nextFrame() (flags byte, header int, size uint64, err error) {
	for {
		flags, header, size, err = g.header()
		switch {
		case err != nil:
			return 0, 0, 0, err
		case flags&flagCommand == 0 && !g.opened:
			return 0, 0, 0, fmt.Errorf("%w: message before the handshake ended", ErrProtocol)
		case flags&flagCommand == 0:
			return flags, header, size, nil
		case flags&flagMore != 0:
			return 0, 0, 0, fmt.Errorf("%w: command with more frames", ErrProtocol)
		case size > maxCommand:
			return 0, 0, 0, fmt.Errorf("%w: command of %d bytes, limit %d", ErrFrameTooLarge, size, maxCommand)
		case !g.opened:
			return flags, header, size, nil
		}
		if err := g.command(header, int(size)); err != nil {
			return 0, 0, 0, err
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
		until, err := g.patience()
		if err != nil {
			return nil, err
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

// patience is until when the next bytes are waited for. It errs with ErrSilent when a message takes too long.
func (g *guard) patience() (time.Time, error) {
	if !g.opened {
		return g.greetBy, nil
	}
	now := time.Now()
	until := now.Add(g.lim.idle)
	if g.begun.IsZero() {
		return until, nil
	}
	last := g.begun.Add(g.lim.whole)
	if now.After(last) {
		return now, fmt.Errorf("%w: one message took over %v", ErrSilent, g.lim.whole)
	}
	if last.Before(until) {
		until = last
	}
	return until, nil
}

// probe sends a heartbeat, or errs when enough have gone unanswered.
func (g *guard) probe() error {
	if !g.opened {
		return fmt.Errorf("%w: it took over %v", ErrSilent, g.lim.handshake)
	}
	if g.probes >= g.lim.probes {
		return fmt.Errorf("%w: nothing heard in %v, %d probes unanswered", ErrSilent,
			g.lim.idle*time.Duration(g.probes+1), g.probes)
	}
	g.probes++
	return g.sendCommand("PING", []byte{0, 0}) // time to live 0: the peer need not time us out
}
