package simulate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/kvscout/kvscout/events"
)

// busy serves requests that make several batches each.
func busy(t *testing.T, e *Engine, requests int) {
	t.Helper()
	for n := range requests {
		serve(t, e, Request{Tokens: span(uint32(n)*50, uint32(n)*50+40), Output: 40})
	}
}

func frames(t *testing.T, line string) [][]byte {
	t.Helper()
	var out [][]byte
	for _, part := range strings.Split(line, ",") {
		b, err := hex.DecodeString(part)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// wantLive checks that frames are live message seq of the engine.
func wantLive(t *testing.T, e *Engine, got [][]byte, seq uint64) {
	t.Helper()
	m, err := events.ParseFrames(got)
	if err != nil {
		t.Fatal(err)
	}
	if m.Seq != seq || string(m.Topic) != e.Source().Topic || !bytes.Equal(m.Payload, e.stream.since(seq)[0].payload) {
		t.Fatalf("message %d with topic %q, want %d with the payload as published", m.Seq, m.Topic, seq)
	}
}

// Invariants 5 and 6 with libzmq: subscribers get every batch in order, by topic prefix, while PINGs are answered.
func TestLibzmqSubscribers(t *testing.T) {
	e := newEngine(t, Config{Topic: "kv@w0@m", Blocks: 400})
	subscribers := []*bufio.Scanner{
		peerProcess(t, "sub", e.Source().Events, "1000000", ""),
		peerProcess(t, "sub", e.Source().Events, "1000000", "other", "kv@w0"),
	}
	none := peerProcess(t, "sub", e.Source().Events, "1", "kv@w1")
	until(t, "two subscribers", func() bool { return e.Stats().Subscribers == 2 })
	until(t, "three peers", func() bool {
		n := 0
		e.stream.pub.each(func(*peer) { n++ })
		return n == 3
	})
	busy(t, e, 300)
	last, _ := e.stream.last()
	for _, lines := range subscribers {
		for seq := range last + 1 {
			if !lines.Scan() {
				t.Fatalf("subscriber ended before %d of %d", seq, last)
			}
			wantLive(t, e, frames(t, lines.Text()), seq)
		}
	}
	// The third subscribed to another topic: the first thing it gets is published when it may have it.
	e.stream.mu.Lock()
	e.stream.topic = "kv@w1@m"
	e.stream.mu.Unlock()
	serve(t, e, Request{Tokens: span(9000, 9040)})
	if !none.Scan() {
		t.Fatal("no message for the third subscriber")
	}
	if m, err := events.ParseFrames(frames(t, none.Text())); err != nil || m.Seq != last+1 {
		t.Errorf("first message of another topic's subscriber is %d, want %d (%v)", m.Seq, last+1, err)
	}
	if s := e.Stats(); s.CutOff+s.BadPeers+s.Refused != 0 {
		t.Errorf("faults: %+v", s)
	}
}

// Replay to libzmq peers in both layouts: a late DEALER gets everything and the end marker, a REQ its first reply.
func TestLibzmqReplay(t *testing.T) {
	for _, form := range Forms() {
		t.Run(string(form), func(t *testing.T) {
			e := newEngine(t, Config{Form: form, Topic: "kv", Blocks: 400, BufferSteps: 50})
			busy(t, e, 100)
			last, _ := e.stream.last()
			for _, start := range []uint64{0, last - 10, last + 1} {
				wantReplay(t, e, peerProcess(t, "dealer", e.Source().Replay, fmt.Sprint(start)), max(start, last-49), last)
			}
			lines := peerProcess(t, "req", e.Source().Replay, fmt.Sprint(last-3))
			if !lines.Scan() {
				t.Fatal("no reply to a REQ")
			}
			m, _, err := events.ParseReply(append([][]byte{nil}, frames(t, lines.Text())...)) // a REQ hides the empty frame
			if err != nil || m.Seq != last-3 {
				t.Errorf("REQ got %d, want %d (%v)", m.Seq, last-3, err)
			}
		})
	}
}

func wantReplay(t *testing.T, e *Engine, lines *bufio.Scanner, from, to uint64) {
	t.Helper()
	size := 3 // empty, sequence, payload
	if e.Form() == FormVLLM || e.Form() == FormSGLang {
		size = 4 // and the topic
	}
	for seq := from; lines.Scan(); seq++ {
		got := frames(t, lines.Text())
		m, end, err := events.ParseReply(got)
		if err != nil || len(got) != size || len(got[0]) != 0 {
			t.Fatalf("reply of %d frames: %v", len(got), err)
		}
		if end {
			if seq != to+1 {
				t.Errorf("replay ended at %d, want %d", seq-1, to)
			}
			return
		}
		if m.Seq != seq || !bytes.Equal(m.Payload, e.stream.since(seq)[0].payload) || size == 4 && string(m.Topic) != "kv" {
			t.Fatalf("reply %d (topic %q), want %d", m.Seq, m.Topic, seq)
		}
	}
	t.Fatal("no end marker")
}

// The same with go-zeromq, the client library of this project.
func TestZMQ4Peers(t *testing.T) {
	e := newEngine(t, Config{Topic: "kv@w0@m", Blocks: 400})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	sub := zmq4.NewSub(ctx)
	defer func() { _ = sub.Close() }()
	if err := errors.Join(sub.SetOption(zmq4.OptionSubscribe, "kv@"), sub.Dial(e.Source().Events)); err != nil {
		t.Fatal(err)
	}
	until(t, "a subscriber", func() bool { return e.Stats().Subscribers == 1 })
	busy(t, e, 60)
	last, _ := e.stream.last()
	for seq := range last + 1 {
		m, err := sub.Recv()
		if err != nil {
			t.Fatal(err)
		}
		wantLive(t, e, m.Frames, seq)
	}
	dealer := zmq4.NewDealer(ctx)
	defer func() { _ = dealer.Close() }()
	if err := dealer.Dial(e.Source().Replay); err != nil {
		t.Fatal(err)
	}
	if err := dealer.SendMulti(zmq4.NewMsgFrom(events.ReplayRequest(5)...)); err != nil {
		t.Fatal(err)
	}
	for seq := uint64(5); ; seq++ {
		got, err := dealer.Recv()
		if err != nil {
			t.Fatal(err)
		}
		m, end, err := events.ParseReply(got.Frames)
		if err != nil {
			t.Fatal(err)
		}
		if end {
			if seq != last+1 {
				t.Errorf("replay ended at %d, want %d", seq-1, last)
			}
			return
		}
		if m.Seq != seq {
			t.Fatalf("reply %d, want %d", m.Seq, seq)
		}
	}
}

// A restart ends connections; libzmq connects again by itself and finds sequence 0.
func TestLibzmqSeesRestart(t *testing.T) {
	e := newEngine(t, Config{Form: FormSGLang, Blocks: 400})
	lines := peerProcess(t, "sub", e.Source().Events, "1000000", "")
	for life := range 3 {
		until(t, "a subscriber", func() bool { return e.Stats().Subscribers == 1 })
		busy(t, e, 3)
		last, _ := e.stream.last()
		for seq := range last + 1 {
			if !lines.Scan() {
				t.Fatal("subscriber ended")
			}
			wantLive(t, e, frames(t, lines.Text()), seq)
		}
		if life == 2 {
			break
		}
		if err := e.Restart(); err != nil {
			t.Fatal(err)
		}
	}
}

// Invariant 6: a subscriber that does not read is cut off at the bound, while the others and the engine go on.
func TestStalledSubscriberIsCutOff(t *testing.T) {
	e := newEngine(t, Config{BufferSteps: 1})
	conn := dial(t, e.Source().Events, "SUB")
	if _, err := conn.Write([]byte{0, 1, 1}); err != nil { // subscribe to all
		t.Fatal(err)
	}
	until(t, "a subscriber", func() bool { return e.Stats().Subscribers == 1 })
	payload := make([]byte, 1<<20) // the bound is in bytes; nothing is copied
	for n := 0; e.Stats().CutOff == 0; n++ {
		if n > 4*maxQueuedBytes>>20 {
			t.Fatal("never cut off")
		}
		e.stream.publish(payload)
	}
	until(t, "the peer is gone", func() bool { return e.Stats().Subscribers == 0 })
	serve(t, e, Request{Tokens: span(0, 40)})
}

// Close returns with peers in every state: subscribed, shaking hands, silent. goleak sees that nothing is left.
func TestCloseWithPeers(t *testing.T) {
	e := newEngine(t, Config{Events: "tcp://*:0"})
	if got := e.Source().Events; !strings.HasPrefix(got, "tcp://127.0.0.1:") {
		t.Errorf("events endpoint %s cannot be dialled", got)
	}
	dial(t, e.Source().Events, "SUB")
	conn, err := net.Dial("tcp", strings.TrimPrefix(e.Source().Events, "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	until(t, "both are accepted", func() bool {
		e.stream.pub.mu.Lock()
		defer e.stream.pub.mu.Unlock()
		return len(e.stream.pub.conns) == 2 && len(e.stream.pub.peers) == 1
	})
	start := time.Now()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > flushTime+time.Second {
		t.Errorf("Close took %v", took)
	}
}

// An engine may bind a unix socket; Close removes it.
func TestIPC(t *testing.T) {
	path := t.TempDir() + "/s"
	e := newEngine(t, Config{Events: "ipc://" + path, Topic: "kv"})
	if got := e.Source().Events; got != "ipc://"+path {
		t.Errorf("endpoint %s", got)
	}
	lines := peerProcess(t, "sub", e.Source().Events, "1", "kv")
	until(t, "a subscriber", func() bool { return e.Stats().Subscribers == 1 })
	serve(t, e, Request{Tokens: span(0, 40)})
	if !lines.Scan() {
		t.Fatal("no message")
	}
	wantLive(t, e, frames(t, lines.Text()), 0)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket file is left: %v", err)
	}
}
