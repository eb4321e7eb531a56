package ingest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
	"github.com/kvscout/kvscout/indexer"
)

// The benchmarks feed the index with bytes as vLLM sends them: batches of one store of 32 blocks of 16 tokens, and one
// removal of a prompt that was stored before, so that what is resident stays the same.
const (
	benchBlocks  = 32
	benchTokens  = 16
	benchRing    = 512 // batches per source, sent over and over
	benchSources = 4
)

// benchToken is a token of prompt p of a source: no two prompts begin alike.
func benchToken(source, p, i int) uint32 {
	return uint32(source*benchRing+p)*1000 + uint32(i%1000)
}

func benchHashes(source, p int) []uint64 {
	out := make([]uint64, benchBlocks)
	for b := range out {
		out[b] = uint64(source+1)<<48 | uint64(p+1)<<16 | uint64(b) | 1<<63
	}
	return out
}

// benchBatch stores prompt p and removes the one half a ring before it.
func benchBatch(b *testing.B, source, p int) []byte {
	tokens := make([]uint32, benchBlocks*benchTokens)
	for i := range tokens {
		tokens[i] = benchToken(source, p, i)
	}
	remove := map[string]any{"type": "BlockRemoved", "block_hashes": benchHashes(source, (p+benchRing/2)%benchRing), "medium": "GPU"}
	return benchStore(b, benchHashes(source, p), tokens, remove)
}

// benchStore stores a prompt, and more.
func benchStore(b *testing.B, hashes []uint64, tokens []uint32, more ...any) []byte {
	store := map[string]any{
		"type": "BlockStored", "block_hashes": hashes, "parent_block_hash": nil, "token_ids": tokens,
		"block_size": benchTokens, "lora_id": nil, "medium": "GPU", "lora_name": nil,
	}
	payload, err := msgpack.Marshal([]any{1.5, append([]any{store}, more...), 0})
	if err != nil {
		b.Fatal(err)
	}
	return payload
}

// publisher is a PUB made of bytes: it costs little beside what it feeds.
type publisher struct {
	l    net.Listener
	conn chan net.Conn
	ring [][]byte // payloads
	next uint64
}

func newPublisher(b *testing.B, source int) *publisher {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	p := &publisher{l: l, conn: make(chan net.Conn, 1)}
	for i := range benchRing {
		p.ring = append(p.ring, benchBatch(b, source, i))
	}
	go func() { // ends with the one connection that it takes
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Write(zmqtest.Hello("PUB"))
		p.conn <- c
		_, _ = io.Copy(io.Discard, c) // subscriptions and heartbeats
	}()
	b.Cleanup(func() { l.Close() })
	return p
}

// append encodes the next batch and returns which prompt it stores.
func (p *publisher) append(buf []byte) ([]byte, int) {
	prompt := int(p.next % benchRing)
	payload := p.ring[prompt]
	buf = append(buf, 1, 2, 'k', 'v', 1, 8)
	buf = binary.BigEndian.AppendUint64(buf, p.next)
	buf = binary.BigEndian.AppendUint64(append(buf, 2), uint64(len(payload)))
	p.next++
	return append(buf, payload...), prompt
}

func benchFleet(b *testing.B) (*indexer.Index, []*publisher, []net.Conn) {
	x, _, ps, conns := benchFleetOf(b)
	return x, ps, conns
}

func benchFleetOf(b *testing.B) (*indexer.Index, *Fleet, []*publisher, []net.Conn) {
	gc := debug.SetGCPercent(400) // as `kvscout serve` runs
	b.Cleanup(func() { debug.SetGCPercent(gc) })
	x := indexer.New(indexer.Options{})
	fleet := New(x, Options{})
	b.Cleanup(fleet.Close)
	var ps []*publisher
	var conns []net.Conn
	for i := range benchSources {
		p := newPublisher(b, i)
		ps = append(ps, p)
		id := string(rune('a' + i))
		src := events.Source{Worker: id, Engine: events.EngineVLLM, Events: "tcp://" + p.l.Addr().String()}
		if _, err := fleet.Register(Worker{ID: id, Model: "m", Sources: []events.Source{src}}); err != nil {
			b.Fatal(err)
		}
		conns = append(conns, <-p.conn)
	}
	return x, fleet, ps, conns
}

// reached waits until every source has applied so many batches.
func reached(x *indexer.Index, batches uint64) {
	for {
		done := 0
		for _, l := range x.Ledgers() {
			if l.Stats().Batches >= batches {
				done++
			}
		}
		if done == benchSources {
			return
		}
		time.Sleep(200 * time.Microsecond) // a poll: the index tells nobody
	}
}

// BenchmarkIngest measures blocks from the network to the index, stored and removed, as fast as they go. One operation is
// a batch of each source.
func BenchmarkIngest(b *testing.B) {
	x, ps, conns := benchFleet(b)
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for i, p := range ps {
		wg.Go(func() { // ends after b.N batches
			buf := make([]byte, 0, 1<<20)
			for n := range b.N {
				buf, _ = p.append(buf)
				if len(buf) > 900<<10 || n == b.N-1 {
					_, _ = conns[i].Write(buf)
					buf = buf[:0]
				}
			}
		})
	}
	wg.Wait()
	reached(x, uint64(b.N))
	stored := float64(b.N * benchSources * benchBlocks)
	b.ReportMetric(stored/b.Elapsed().Seconds(), "blocks/s")
	b.StopTimer()
	for _, c := range conns {
		c.Close()
	}
}

// BenchmarkVisibleLag measures the time from the writing of a batch to its being seen by a lookup, at over 200,000 blocks
// a second and with lookups running all the time. One operation is 1 ms.
func BenchmarkVisibleLag(b *testing.B) {
	const slice, perSlice = time.Millisecond, 7 // 224,000 blocks a second
	x, ps, conns := benchFleet(b)
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	var lookups atomic.Int64
	wg.Go(func() { // ends with ctx
		for i := 0; ctx.Err() == nil; i++ {
			benchHeld(b, x, i%benchSources, i%benchRing)
			lookups.Add(1)
			if i%16 == 0 {
				time.Sleep(50 * time.Microsecond) // a busy server, not a busy loop
			}
		}
	})
	var lags []time.Duration
	b.ResetTimer()
	due := time.Now()
	for n := range b.N {
		due = due.Add(slice) // what was late is made up for
		time.Sleep(time.Until(due))
		i := n % benchSources
		buf, prompt := []byte(nil), 0
		for range perSlice {
			buf, prompt = ps[i].append(buf)
		}
		sent := time.Now()
		_, _ = conns[i].Write(buf)
		if n%5 == 0 { // the last of the batches is the last to be seen
			for benchHeld(b, x, i, prompt) < benchBlocks*benchTokens && time.Since(sent) < time.Second {
				time.Sleep(20 * time.Microsecond)
			}
			lags = append(lags, time.Since(sent))
		}
	}
	b.StopTimer()
	cancel()
	wg.Wait()
	slices.Sort(lags)
	b.ReportMetric(float64(lags[len(lags)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(lags[len(lags)*99/100].Microseconds())/1000, "ms-p99")
	b.ReportMetric(float64(lookups.Load())/b.Elapsed().Seconds(), "lookups/s")
	b.ReportMetric(float64(b.N*perSlice*benchBlocks)/b.Elapsed().Seconds(), "blocks/s")
	for _, c := range conns {
		c.Close()
	}
}

// benchHeld is what the source holds of one of its prompts.
func benchHeld(b *testing.B, x *indexer.Index, source, prompt int) int {
	q := indexer.Query{Model: "m", Tokens: make([]uint32, benchBlocks*benchTokens)}
	for i := range q.Tokens {
		q.Tokens[i] = benchToken(source, prompt, i)
	}
	matches, err := x.Lookup(context.Background(), q)
	if err != nil {
		b.Error(err)
		return 0
	}
	for _, m := range matches {
		if m.Source.Worker == string(rune('a'+source)) {
			return m.Held
		}
	}
	return 0
}
