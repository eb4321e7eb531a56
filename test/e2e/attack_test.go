package e2e

import (
	"encoding/binary"
	"net"
	"strconv"
	"testing"
	"time"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// greeting is ZMTP 3.0's: signature, version, mechanism NULL, not a server.
func greeting() []byte {
	b := make([]byte, 64)
	b[0], b[9], b[10] = 0xff, 0x7f, 3
	copy(b[12:], "NULL")
	return b
}

// ready is the command that ends the handshake of a PUB.
func ready() []byte {
	body := append([]byte("\x05READY\x0bSocket-Type"), 0, 0, 0, 3)
	body = append(body, "PUB"...)
	return append([]byte{4, byte(len(body))}, body...)
}

func longFrame(flags byte, size uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{flags | 2}, size)
}

// attacks are what strangers send to the port that engines dial.
func attacks() map[string][]byte {
	shaken := append(greeting(), ready()...)
	with := func(b ...byte) []byte { return append(append([]byte(nil), shaken...), b...) }
	badReady := append([]byte("\x05READY\x0bSocket-Type"), 0x7f, 0xff, 0xff, 0xff, 'P')
	train := with()
	for range 100 {
		train = append(train, 1, 0) // empty frames, each with more to come
	}
	return map[string][]byte{
		"nothing":                  nil,
		"http":                     []byte("GET / HTTP/1.1\r\nHost: kvscout\r\n\r\n"),
		"tls":                      {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3},
		"zeros":                    make([]byte, 4096),
		"half a greeting":          greeting()[:20],
		"greeting alone":           greeting(),
		"property past the end":    append(append(greeting(), 4, byte(len(badReady))), badReady...),
		"property name past end":   append(greeting(), 4, 8, 5, 'R', 'E', 'A', 'D', 'Y', 0xff, 'x'),
		"empty command":            append(greeting(), 4, 0),
		"command of 2^62 bytes":    append(greeting(), longFrame(4, 1<<62)...),
		"frame of 2^62 bytes":      with(longFrame(0, 1<<62)...),
		"frame of 2^42 bytes":      with(longFrame(0, 1<<42)...),
		"frame of 2^63 bytes more": with(longFrame(1, 1<<63)...),
		"endless frames":           train,
		"bad flags":                with(0xff, 1, 0),
		"ping without end":         with(4, 5, 4, 'P', 'I', 'N', 'G'),
		"a frame of no message":    with(0, 1, 'x'),
	}
}

// Cases 88 and 118 at the transport: strangers at the port that engines dial disturb neither the source nor the server, and those who
// stay silent keep no engine out.
func TestAttack_BoundPort(t *testing.T) {
	t.Parallel()
	e := startEngine(t, engineConfig{id: "w0", dial: true, replay: true})
	other := startEngine(t, engineConfig{id: "w1"})
	s := serveFleet(t, []*engine{e, other})
	e.hello(s)
	other.hello(s)
	first := s.reached(t, "w0", 0, e.serve(span(1, 9)).Seq)
	counted := func(st *kvscoutv1.SourceStats) uint64 { return st.Rejected["too_large"] + st.Rejected["bad_frames"] }

	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(e.port))
	for name, data := range attacks() {
		for range 3 {
			c, err := net.DialTimeout("tcp", address, patience)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			t.Cleanup(func() { c.Close() }) // it stays until the end, unless the server closes it
			_ = c.SetDeadline(time.Now().Add(patience))
			_, _ = c.Write(data) // the server may close it at once
		}
		n := uint32(13)
		s.reached(t, "w1", 0, other.serve(span(1, n)).Seq)
		same(t, "neighbour during "+name, s.score(t, "w1", span(1, n)), answer{n - 1, n - 1, exact, ""})
	}
	// Of each three: four kinds of frames over the limits, and one of a message that is none.
	s.await(t, "bad frames counted", "w0", 0, func(st *kvscoutv1.SourceStats) bool { return counted(st) == counted(first)+15 })
	st := s.reached(t, "w0", 0, e.serve(span(1, 21)).Seq)
	same(t, "the source itself", s.score(t, "w0", span(1, 21)), answer{20, 20, exact, ""})
	if st.Gaps != 0 || st.Resets != 0 {
		t.Errorf("neither gap nor reset wanted: %v, before %v", st, first)
	}
	// An engine that comes now gets in, though the silent ones are still there.
	e.restart()
	e.hello(s)
	s.reached(t, "w0", 0, e.serve(span(101, 109)).Seq)
	same(t, "the engine's next life", s.score(t, "w0", span(101, 109)), answer{8, 8, exact, ""})
	same(t, "its old life", s.score(t, "w0", span(1, 21)), answer{0, 0, exact, ""})
	if peak := s.peakRSS(t); peak > peakLimit {
		t.Errorf("peak of %d MB resident", peak>>20)
	}
	if !s.alive() {
		t.Error("the server ended")
	}
}
