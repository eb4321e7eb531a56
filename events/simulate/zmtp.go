package simulate

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// Limits on what a peer may send (invariant 8). Subscriptions and replay requests are tiny.
const (
	maxFrame      = 64 << 10
	maxFrames     = 8
	handshakeTime = 3 * time.Second
)

// errZMTP is a peer that breaks the protocol or a limit.
var errZMTP = errors.New("zmtp")

// Flags of a frame.
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// greeting is ours: signature, version 3.1, mechanism NULL.
func greeting() []byte {
	b := make([]byte, 64)
	b[0], b[9] = 0xff, 0x7f
	b[10], b[11] = 3, 1
	copy(b[12:], "NULL")
	return b
}

// handshake greets a peer that connected and checks that its socket type is one of accepts. r must buffer conn.
func handshake(conn net.Conn, r *bufio.Reader, socket string, accepts []string) error {
	if err := conn.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return err
	}
	hello := appendFrame(greeting(), flagCommand, appendProperty([]byte("\x05READY"), "Socket-Type", socket))
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	var theirs [64]byte
	if _, err := io.ReadFull(r, theirs[:]); err != nil {
		return err
	}
	if theirs[0] != 0xff || theirs[9] != 0x7f || theirs[10] < 3 {
		return fmt.Errorf("%w: greeting % x is not ZMTP 3", errZMTP, theirs[:12])
	}
	if mechanism := bytes.TrimRight(theirs[12:32], "\x00"); string(mechanism) != "NULL" {
		return fmt.Errorf("%w: mechanism %q, only NULL is known", errZMTP, mechanism)
	}
	frames, command, err := readMessage(r)
	if err != nil {
		return err
	}
	ready, ok := bytes.CutPrefix(frames[0], []byte("\x05READY"))
	if !command || !ok {
		return fmt.Errorf("%w: first frame is not READY", errZMTP)
	}
	kind, err := property(ready, "Socket-Type")
	if err != nil {
		return err
	}
	if !slices.Contains(accepts, kind) {
		return fmt.Errorf("%w: peer is %.20q, want one of %v", errZMTP, kind, accepts)
	}
	return conn.SetDeadline(time.Time{})
}

// readMessage reads one message, or one command (then frames has one element).
func readMessage(r *bufio.Reader) (frames [][]byte, command bool, err error) {
	for {
		flags, err := r.ReadByte()
		if err != nil {
			return nil, false, err
		}
		body, err := readBody(r, flags)
		if err != nil {
			return nil, false, err
		}
		if flags&flagCommand != 0 {
			if len(frames) > 0 || flags&flagMore != 0 {
				return nil, false, fmt.Errorf("%w: command inside a message", errZMTP)
			}
			return [][]byte{body}, true, nil
		}
		if len(frames) == maxFrames {
			return nil, false, fmt.Errorf("%w: more than %d frames", errZMTP, maxFrames)
		}
		frames = append(frames, body)
		if flags&flagMore == 0 {
			return frames, false, nil
		}
	}
}

func readBody(r *bufio.Reader, flags byte) ([]byte, error) {
	if flags > flagMore|flagLong|flagCommand {
		return nil, fmt.Errorf("%w: frame flags %#x", errZMTP, flags)
	}
	var head [8]byte
	part := head[7:]
	if flags&flagLong != 0 {
		part = head[:]
	}
	if _, err := io.ReadFull(r, part); err != nil {
		return nil, noEOF(err)
	}
	size := binary.BigEndian.Uint64(head[:])
	if size > maxFrame {
		return nil, fmt.Errorf("%w: frame of %d bytes, at most %d are taken", errZMTP, size, maxFrame)
	}
	body := make([]byte, size)
	_, err := io.ReadFull(r, body)
	return body, noEOF(err)
}

// noEOF keeps the end of a stream inside a frame from looking like a clean end.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// property finds a READY property: name length, name, value length (4 bytes), value. Names ignore case.
func property(b []byte, name string) (string, error) {
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n+4 {
			break
		}
		key, rest := b[1:1+n], b[1+n:]
		size := binary.BigEndian.Uint32(rest)
		if uint64(size) > uint64(len(rest)-4) {
			break
		}
		if bytes.EqualFold(key, []byte(name)) {
			return string(rest[4 : 4+size]), nil
		}
		b = rest[4+size:]
	}
	return "", fmt.Errorf("%w: READY without a readable %s", errZMTP, name)
}

func appendProperty(b []byte, name, value string) []byte {
	b = append(b, byte(len(name)))
	b = append(b, name...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(b, value...)
}

func appendFrame(b []byte, flags byte, body []byte) []byte {
	return append(appendHead(b, flags, len(body)), body...)
}

// appendHead begins a frame whose body of size bytes the caller sends after it.
func appendHead(b []byte, flags byte, size int) []byte {
	if size > 255 {
		return binary.BigEndian.AppendUint64(append(b, flags|flagLong), uint64(size))
	}
	return append(b, flags, byte(size))
}

// message is an encoded message: its frames' heads and small bodies, and the last body, which is shared, not copied.
type message struct{ head, payload []byte }

// newMessage encodes frames followed by payload.
func newMessage(payload []byte, frames ...[]byte) message {
	var head []byte
	for _, f := range frames {
		head = appendFrame(head, flagMore, f)
	}
	return message{head: appendHead(head, 0, len(payload)), payload: payload}
}

// newCommand encodes a command of a name and a body.
func newCommand(name string, body []byte) message {
	text := append([]byte{byte(len(name))}, name...)
	return message{head: appendFrame(nil, flagCommand, append(text, body...))}
}

func (m message) size() int { return len(m.head) + len(m.payload) }
