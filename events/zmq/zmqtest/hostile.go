package zmqtest

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Attack is what a hostile or broken peer writes once it is connected.
type Attack struct {
	Name string
	// Bytes are written in one piece. Nil stays silent.
	Bytes []byte
	// Every, if set, is the pause after each of Bytes, which are written one by one then.
	Every time.Duration
}

// Attacks are byte streams that a receiver must survive: broken handshakes, impossible lengths, endless messages.
// Those that need it contain a good greeting and READY of a peer of type socket ("PUB", "ROUTER").
func Attacks(socket string) []Attack {
	hello := Hello(socket)
	with := func(b ...byte) []byte { return append(append([]byte{}, hello...), b...) }
	long := func(flags byte, size uint64) []byte {
		return with(binary.BigEndian.AppendUint64([]byte{flags}, size)...)
	}
	train := make([]byte, 0, 4096)
	for range 1024 {
		train = append(train, 1, 1, 'x')
	}
	return []Attack{
		{Name: "silent"},
		{Name: "http", Bytes: []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n" + string(make([]byte, 64)))},
		{Name: "zeros", Bytes: make([]byte, 256)},
		{Name: "half a greeting", Bytes: hello[:20]},
		Trickle(),
		{Name: "property name past the end", Bytes: ready("\x64abc")},
		{Name: "property length past the end", Bytes: ready("\x01x")},
		{Name: "empty property", Bytes: ready("\x00")},
		{Name: "unknown socket type", Bytes: ready("\x0bSocket-Type\x00\x00\x00\x03FOO")},
		{Name: "wrong socket type", Bytes: ready("\x0bSocket-Type\x00\x00\x00\x04PUSH")},
		{Name: "empty command for READY", Bytes: append(greeting(), 4, 0)},
		{Name: "name past the end of READY", Bytes: append(greeting(), 4, 2, 200, 'R')},
		{Name: "message for READY", Bytes: append(greeting(), 0, 1, 'x')},
		{Name: "huge READY", Bytes: binary.BigEndian.AppendUint64(append(greeting(), 6), 1<<40)},
		{Name: "frame of 2^62", Bytes: long(2, 1<<62)},
		{Name: "frame of 2^63", Bytes: long(2, 1<<63)},
		{Name: "frame of 2^34", Bytes: long(2, 1<<34)},
		{Name: "command of 2^62", Bytes: long(6, 1<<62)},
		{Name: "command with more", Bytes: with(5, 1, 0)},
		{Name: "reserved flags", Bytes: with(0xf8, 1, 0)},
		{Name: "endless frames", Bytes: with(train...)},
	}
}

// Trickle is a handshake that goes on for longer than any test, never pausing long: a greeting and the beginning of a
// READY of the size that is allowed.
func Trickle() Attack {
	b := binary.BigEndian.AppendUint64(append(greeting(), 6), 8000)
	return Attack{Name: "trickled handshake", Bytes: append(b, make([]byte, 8000)...), Every: 20 * time.Millisecond}
}

// Strike dials address, writes the attack and waits until the receiver closes the connection, at most for the given
// time; it reports whether it did.
func Strike(t testing.TB, network, address string, a Attack, limit time.Duration) bool {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return Play(c, a, limit)
}

// Play does the same over a connection.
func Play(c net.Conn, a Attack, limit time.Duration) bool {
	by := time.Now().Add(limit)
	if a.Every > 0 {
		for i := 0; i < len(a.Bytes) && time.Now().Before(by); i++ {
			if _, err := c.Write(a.Bytes[i : i+1]); err != nil {
				return true
			}
			time.Sleep(a.Every) // the trickling is what is tested
		}
		return false
	}
	_, _ = c.Write(a.Bytes) // the receiver may close in the middle: that is the point
	_ = c.SetReadDeadline(by)
	_, err := io.Copy(io.Discard, c)
	ne, ok := err.(net.Error)
	return !ok || !ne.Timeout()
}

// Stage listens, plays a to everyone who dials, and closes when the other side does. It returns the address.
func Stage(t testing.TB, a Attack) string {
	t.Helper()
	return Each(t, func(_ int, c net.Conn) {
		if !Play(c, a, 5*time.Second) {
			t.Errorf("%s: connection stays open", a.Name)
		}
	})
}

// Each listens, and runs meet for every connection, numbered from 0, which it closes afterwards. The test waits for what
// meet does. It returns the address.
func Each(t testing.TB, meet func(n int, c net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { // ended by closing l, waited for in the cleanup
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { // ends with meet
				defer c.Close()
				meet(n, c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// Hello is a whole handshake of a peer of that type.
func Hello(socket string) []byte {
	n := append([]byte{0, 0, 0, byte(len(socket))}, socket...)
	return ready("\x0bSocket-Type" + string(n))
}

func greeting() []byte {
	g := make([]byte, 64)
	g[0], g[9], g[10] = 0xff, 0x7f, 3
	copy(g[12:], "NULL")
	return g
}

// ready is a greeting and a READY with these bytes for properties.
func ready(properties string) []byte {
	b := append(greeting(), 4, byte(6+len(properties)), 5)
	return append(append(b, "READY"...), properties...)
}
