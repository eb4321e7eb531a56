package simulate

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
)

// dial opens a raw connection and sends what a peer of this type sends first, without reading.
func dial(t *testing.T, endpoint, socketType string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ready := appendFrame(greeting(), flagCommand, appendProperty([]byte("\x05READY"), "Socket-Type", socketType))
	if _, err := conn.Write(ready); err != nil {
		t.Fatal(err)
	}
	return conn
}

// Invariant 8: what breaks the protocol or a limit ends its own connection only, and is counted.
func TestHostilePeers(t *testing.T) {
	e := newEngine(t, Config{})
	good := peerProcess(t, "sub", e.Source().Events, "1", "")
	until(t, "a subscriber", func() bool { return e.Stats().Subscribers == 1 })
	raw := func(b []byte) func() net.Conn {
		return func() net.Conn {
			conn, err := net.Dial("tcp", strings.TrimPrefix(e.Source().Events, "tcp://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			_, _ = conn.Write(b) // the other side may be gone already
			return conn
		}
	}
	after := func(b []byte) func() net.Conn {
		return func() net.Conn {
			conn := dial(t, e.Source().Events, "SUB")
			_, _ = conn.Write(b)
			return conn
		}
	}
	huge := append([]byte{flagLong}, bytes.Repeat([]byte{0x7f}, 8)...)
	many := bytes.Repeat([]byte{flagMore, 0}, maxFrames+1)
	badReady := appendFrame(greeting(), flagCommand, []byte("\x05READY\xffSocket"))
	for name, open := range map[string]func() net.Conn{
		"http":      raw([]byte("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: something or other/1.0\r\n\r\n")),
		"plain":     raw(append(append([]byte{0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 1}, "PLAIN"...), make([]byte, 47)...)),
		"bad READY": raw(badReady),
		"cut greeting": func() net.Conn {
			conn := raw(greeting()[:20])()
			_ = conn.(*net.TCPConn).CloseWrite()
			return conn
		},
		"wrong type":    func() net.Conn { return dial(t, e.Source().Events, "PULL") },
		"huge frame":    after(huge),
		"many frames":   after(many),
		"bad flags":     after([]byte{0xf0, 0}),
		"not a topic":   after([]byte{0, 2, 9, 9}),
		"empty command": after([]byte{flagCommand, 0}),
		"split command": after([]byte{flagMore, 0, flagCommand, 0}),
	} {
		before := e.Stats().BadPeers
		conn := open()
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: connection still open", name)
		}
		until(t, name+" counted", func() bool { return e.Stats().BadPeers == before+1 })
	}
	serve(t, e, Request{Tokens: span(0, 40)})
	if !good.Scan() {
		t.Fatal("the good subscriber got nothing")
	}
	wantLive(t, e, frames(t, good.Text()), 0)
}

// Requests in another form than [empty, start] get no answer and are counted, as engines do.
func TestInvalidReplayRequests(t *testing.T) {
	e := newEngine(t, Config{})
	serve(t, e, Request{Tokens: span(0, 40)})
	conn := dial(t, e.Source().Replay, "DEALER")
	var b []byte
	b = appendFrame(b, 0, sequenceFrame(0))                                     // no empty frame
	b = appendFrame(appendFrame(b, flagMore, nil), 0, make([]byte, 9))          // 9 bytes of sequence
	b = appendFrame(appendFrame(b, flagMore, []byte("x")), 0, sequenceFrame(0)) // the first is not empty
	b = appendFrame(appendFrame(b, flagMore, nil), 0, nil)                      // an empty start is 0
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	if _, err := io.ReadFull(in, make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	var replies [][][]byte
	for len(replies) < 3 {
		got, _, err := readMessage(in)
		if err != nil {
			t.Fatal(err)
		}
		replies = append(replies, got)
	}
	if m, _, err := events.ParseReply(replies[1]); err != nil || m.Seq != 0 {
		t.Errorf("first answer is %d (%v), want 0", m.Seq, err)
	}
	if _, end, _ := events.ParseReply(replies[2]); !end {
		t.Error("no end marker after the only batch")
	}
	if s := e.Stats(); s.BadRequests != 3 || s.Replays != 1 {
		t.Errorf("%d bad and %d good requests, want 3 and 1", s.BadRequests, s.Replays)
	}
}

// skipHello reads the engine's greeting and READY.
func skipHello(t *testing.T, conn net.Conn) *bufio.Reader {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(conn)
	if _, err := io.ReadFull(in, make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	if got, command, err := readMessage(in); err != nil || !command || !bytes.HasPrefix(got[0], []byte("\x05READY")) {
		t.Fatalf("no READY: %q, %v", got, err)
	}
	return in
}

// RFC 37: a PING is answered by a PONG with its context.
func TestPingIsAnswered(t *testing.T) {
	e := newEngine(t, Config{})
	conn := dial(t, e.Source().Events, "SUB")
	in := skipHello(t, conn)
	if _, err := conn.Write(appendFrame(nil, flagCommand, []byte("\x04PING\x00\x0acontext"))); err != nil {
		t.Fatal(err)
	}
	if got, command, err := readMessage(in); err != nil || !command || string(got[0]) != "\x04PONGcontext" {
		t.Errorf("answer %q (command %v), %v", got, command, err)
	}
}

// Subscriptions come as messages (ZMTP 3.0) or commands (3.1), count, and are taken back one by one.
func TestSubscriptionForms(t *testing.T) {
	e := newEngine(t, Config{Topic: "kv@w0"})
	conn := dial(t, e.Source().Events, "SUB")
	skipHello(t, conn)
	for _, step := range []struct {
		send string
		want int
	}{
		{"\x00\x03\x01kv", 1},          // message: subscribe to "kv"
		{"\x04\x0c\x09SUBSCRIBEkv", 1}, // the same again, as a command
		{"\x00\x03\x00kv", 1},          // one taken back
		{"\x04\x09\x06CANCELkv", 0},    // the other too
		{"\x04\x0b\x09SUBSCRIBEx", 0},  // another topic
		{"\x00\x06\x01kv@w0", 1},       // the whole topic
		{"\x00\x07\x00kv@w00", 1},      // never subscribed to: nothing
		{"\x04\x0c\x06CANCELkv@w0", 0},
		{"\x04\x0a\x09SUBSCRIBE", 1}, // everything
	} {
		if _, err := conn.Write([]byte(step.send)); err != nil {
			t.Fatal(err)
		}
		// A PING behind it is answered when the subscription was read.
		if _, err := conn.Write(appendFrame(nil, flagCommand, []byte("\x04PING\x00\x0a"))); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, len("\x04\x05\x04PONG"))); err != nil {
			t.Fatal(err)
		}
		if got := e.Stats().Subscribers; got != step.want {
			t.Errorf("after %q: %d subscribers, want %d", step.send, got, step.want)
		}
	}
}
