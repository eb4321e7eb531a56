package stream_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/stream"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
)

// counter is a Sink that only counts; done is closed at the last batch.
type counter struct {
	left int
	done chan struct{}
}

func (c *counter) Apply(uint64, []byte, time.Time) {
	if c.left--; c.left == 0 {
		close(c.done)
	}
}
func (c *counter) Reset()                    {}
func (c *counter) Joined(uint64, bool)       {}
func (c *counter) Gap(uint64, uint64)        {}
func (c *counter) State(events.State, error) {}
func (c *counter) Reject(events.Reason)      {}
func (c *counter) Replayed(int)              {}

// BenchmarkLive measures one message from the network to the sink, from a publisher that writes as fast as it can.
func BenchmarkLive(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go publishRaw(l, b.N, 2048, done) // ends with its connection, waited for below
	c := &counter{left: b.N, done: make(chan struct{})}
	s, err := stream.New(source("tcp://"+l.Addr().String(), ""), c, quick())
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	b.SetBytes(2048)
	b.ReportAllocs()
	b.ResetTimer()
	go func() { ended <- s.Run(ctx) }() // ended by cancel, waited for below
	<-c.done
	b.StopTimer()
	cancel()
	<-ended
	<-done
}

// publishRaw serves one connection with n messages.
func publishRaw(l net.Listener, n, size int, done chan<- struct{}) {
	defer close(done)
	c, err := l.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	if _, err := c.Write(zmqtest.Hello("PUB")); err != nil {
		return
	}
	buf := make([]byte, 0, 1<<20)
	for i := range n {
		buf = append(buf, 1, 2, 'k', 'v', 1, 8)
		buf = binary.BigEndian.AppendUint64(buf, uint64(i))
		buf = binary.BigEndian.AppendUint64(append(buf, 2), uint64(size))
		buf = append(buf, make([]byte, size)...)
		if len(buf) > 900<<10 || i == n-1 {
			if _, err := c.Write(buf); err != nil {
				return
			}
			buf = buf[:0]
		}
	}
	_, _ = io.Copy(io.Discard, c) // until the subscriber leaves
}
