package jetstream

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/jetstream/embedded"
)

// counted is a Target whose sinks count messages.
type counted struct {
	n    atomic.Int64
	want int64
	done chan struct{}
}

func (c *counted) Describe(Member) error        { return nil }
func (c *counted) Forget(string)                {}
func (c *counted) Sink(string, int) events.Sink { return c }
func (c *counted) Reset()                       {}
func (c *counted) Joined(uint64, bool)          {}
func (c *counted) Gap(uint64, uint64)           {}
func (c *counted) State(events.State, error)    {}
func (c *counted) Reject(events.Reason)         {}
func (c *counted) Replayed(int)                 {}
func (c *counted) Apply(uint64, []byte, time.Time) {
	if c.n.Add(1) == c.want {
		close(c.done)
	}
}

// BenchmarkLog measures messages of 1 KiB from 8 sources, through the embedded server's file, to one replica.
func BenchmarkLog(b *testing.B) {
	const sources = 8
	s, err := embedded.Start(embedded.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	l, err := Open(Options{Server: s, QueueBytes: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	p := l.NewPublisher()
	sink := &counted{want: int64(b.N), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	f := l.Follow(sink)
	var running sync.WaitGroup
	running.Go(func() { _ = f.Run(ctx) }) // ends with ctx; waited for below
	defer running.Wait()
	defer cancel()
	defer p.Close(ctx)
	var members []Member
	var feeds []events.Sink
	for i := range sources {
		src := described
		src.Worker = "w" + strconv.Itoa(i)
		feeds = append(feeds, p.Sink(src))
		members = append(members, Member{ID: src.Worker, Sources: []Source{SourceOf(src)}})
	}
	p.Members(members)
	payload := make([]byte, 1024)
	b.SetBytes(int64(len(payload)))
	b.ResetTimer()
	for n := range b.N {
		if n < sources {
			feeds[n].Joined(0, true)
		}
		feeds[n%sources].Apply(uint64(n/sources), payload, time.Now())
	}
	<-sink.done
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
