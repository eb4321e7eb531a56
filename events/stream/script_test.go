package stream_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/stream"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
)

// serve runs script for every connection, numbered from 0, after the greeting of a socket of that type; then it keeps the
// connection until the other side or hang ends it. It writes raw ZMTP, so a test decides what comes when.
func serve(t *testing.T, socket string, script func(n int, c net.Conn) (hang bool)) (endpoint string) {
	t.Helper()
	return "tcp://" + zmqtest.Each(t, func(n int, c net.Conn) {
		_, _ = c.Write(zmqtest.Hello(socket))
		if script(n, c) {
			_, _ = io.Copy(io.Discard, c)
		}
	})
}

// zmtp encodes a message.
func zmtp(frames ...string) []byte {
	var b []byte
	for i, f := range frames {
		more := byte(1)
		if i == len(frames)-1 {
			more = 0
		}
		b = append(b, more, byte(len(f)))
		b = append(b, f...)
	}
	return b
}

func number(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

// lives writes batches of a life as a PUB does, replies as a ROUTER does.
func lives(c net.Conn, life int, from, to uint64) {
	for ; from <= to; from++ {
		_, _ = c.Write(zmtp("kv", number(from), fmt.Sprintf("%d:%d", life, from)))
	}
}

func replies(c net.Conn, life int, from, to uint64) {
	for ; from <= to; from++ {
		_, _ = c.Write(zmtp("", "kv", number(from), fmt.Sprintf("%d:%d", life, from)))
	}
}

func end(c net.Conn) { _, _ = c.Write(zmtp("", "", number(events.EndSequence), "")) }

// mark writes what is counted as ReasonBadFrames, so that a test sees that all before it was taken.
func mark(c net.Conn) { _, _ = c.Write(zmtp("mark")) }

// TestRule8_ReplayFarAheadOfLive: the live stream lags behind the replay by more than events.Tracker remembers. Its
// batches are repeats, not a new life.
func TestRule8_ReplayFarAheadOfLive(t *testing.T) {
	replayed := make(chan struct{})
	pub := serve(t, "PUB", func(_ int, c net.Conn) bool {
		<-replayed
		lives(c, 0, 2000, 5001)
		return true
	})
	router := serve(t, "ROUTER", func(n int, c net.Conn) bool {
		replies(c, 0, []uint64{0, 5000}[n], 5000)
		end(c)
		return true
	})
	d, _ := follow(t, source(pub, router), quick())
	d.seen(t, "5000=0:5000", events.StateLive)
	close(replayed)
	d.seen(t, "5001=0:5001", events.StateLive)
	d.reads(t, "joined 0 complete", "0..5001 of 0")
	d.rejected(t, events.ReasonDuplicate, 3001)
}

// TestRestartWithinAReplay: the publisher is replaced while it answers, and its replacement's numbers would continue.
func TestRestartWithinAReplay(t *testing.T) {
	for _, tc := range []struct {
		name   string
		second func(net.Conn)
		want   []string
	}{
		{"other batch", func(c net.Conn) { replies(c, 1, 2, 5); end(c) }, []string{"reset", "joined 0 complete", "0..5 of 1"}},
		{"begins later", func(c net.Conn) { replies(c, 1, 3, 5); end(c) }, []string{"reset", "joined 3 partial", "3..5 of 1"}},
		{"not as far", end, []string{"reset", "joined 0 complete", "0..5 of 1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pub := serve(t, "PUB", func(int, net.Conn) bool { return true })
			router := serve(t, "ROUTER", func(n int, c net.Conn) bool {
				switch n {
				case 0:
					replies(c, 0, 0, 2)
					_ = c.SetReadDeadline(time.Now().Add(time.Second))
					_, _ = io.ReadFull(c, make([]byte, 150)) // the request must be read, or closing resets the connection
					return false
				case 1:
					tc.second(c)
				default:
					replies(c, 1, 0, 5)
					end(c)
				}
				return true
			})
			d, _ := follow(t, source(pub, router), quick())
			d.seen(t, "5=1:5", events.StateLive)
			d.reads(t, append([]string{"joined 0 complete", "0..2 of 0"}, tc.want...)...)
		})
	}
}

// TestLiveOlderThanTheBuffer: the buffer is so short that at the time of the replay it has lost what came live.
func TestLiveOlderThanTheBuffer(t *testing.T) {
	for _, tc := range []struct {
		name string
		live [2]uint64
		want []string
	}{
		{"whole", [2]uint64{5, 9}, []string{"joined 5 partial", "5..11 of 0"}},
		{"broken", [2]uint64{5, 6}, []string{"joined 5 partial", "5..6 of 0", "gap 7-7", "joined 8 partial", "8..11 of 0"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			taken, replayed := make(chan struct{}), make(chan struct{})
			pub := serve(t, "PUB", func(_ int, c net.Conn) bool {
				lives(c, 0, tc.live[0], tc.live[1])
				mark(c)
				<-replayed
				lives(c, 0, 11, 11)
				return true
			})
			router := serve(t, "ROUTER", func(_ int, c net.Conn) bool {
				<-taken
				replies(c, 0, 8, 10)
				end(c)
				return true
			})
			d, _ := follow(t, source(pub, router), patient())
			d.wait(t, "mark", func() bool { return d.rejects[events.ReasonBadFrames] == 1 })
			close(taken)
			d.wait(t, "10", func() bool { return len(d.entries) > 0 && d.entries[len(d.entries)-1] == "10=0:10" })
			close(replayed)
			d.wait(t, "11", func() bool { return d.entries[len(d.entries)-1] == "11=0:11" })
			d.reads(t, tc.want...)
		})
	}
}

// TestHoleInTheBufferThatCameLive: the buffer lacks a batch that was sent.
func TestHoleInTheBufferThatCameLive(t *testing.T) {
	taken := make(chan struct{})
	pub := serve(t, "PUB", func(_ int, c net.Conn) bool {
		lives(c, 0, 2, 4)
		mark(c)
		return true
	})
	router := serve(t, "ROUTER", func(_ int, c net.Conn) bool {
		<-taken
		replies(c, 0, 0, 1)
		replies(c, 0, 4, 4)
		end(c)
		return true
	})
	d, _ := follow(t, source(pub, router), patient())
	d.wait(t, "mark", func() bool { return d.rejects[events.ReasonBadFrames] == 1 })
	close(taken)
	d.seen(t, "4=0:4", events.StateLive)
	d.reads(t, "joined 0 complete", "0..4 of 0")
}

// TestReplayEndsBeforeItsTail: a ROUTER at its high-water mark drops the last batches and has room for END again. An END
// behind many batches is not believed before a further question brings nothing.
func TestReplayEndsBeforeItsTail(t *testing.T) {
	pub := serve(t, "PUB", func(int, net.Conn) bool { return true })
	router := serve(t, "ROUTER", func(n int, c net.Conn) bool {
		switch n {
		case 0:
			replies(c, 0, 0, 199)
		case 1:
			replies(c, 0, 199, 302)
		default:
			replies(c, 0, 302, 302)
		}
		end(c)
		return true
	})
	d, _ := follow(t, source(pub, router), quick())
	d.seen(t, "199=0:199", events.StateLive)
	d.reads(t, "joined 0 complete", "0..302 of 0")
	d.rejected(t, events.ReasonBadReply, 0)
}

// TestReplayEndsBeforeALiveNumber: a high-water mark cuts short answers too. A live message shows that there was more, so
// it is asked for as long as that brings anything.
func TestReplayEndsBeforeALiveNumber(t *testing.T) {
	for _, tc := range []struct {
		name string
		more []uint64 // the last numbers of the answers for the sake of live number 9
		want []string
	}{
		{"all there", []uint64{5, 7, 8}, []string{"joined 0 complete", "0..9 of 0"}},
		{"no more there", []uint64{5, 7, 7}, []string{"joined 0 complete", "0..7 of 0", "gap 8-9", "joined 10 partial"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			joined := make(chan struct{})
			pub := serve(t, "PUB", func(_ int, c net.Conn) bool {
				<-joined
				lives(c, 0, 9, 9)
				return true
			})
			router := serve(t, "ROUTER", func(n int, c net.Conn) bool {
				last := append([]uint64{0, 2}, tc.more...)
				if n+1 >= len(last) {
					t.Errorf("question %d is one too many", n+1)
					return false
				}
				replies(c, 0, last[n], last[n+1])
				end(c)
				return true
			})
			o := patient()
			o.KeepOnGap = true // nothing is asked for again because of the gap
			d, _ := follow(t, source(pub, router), o)
			d.seen(t, "2=0:2", events.StateLive)
			close(joined)
			d.wait(t, "all entries", func() bool { return len(d.entries) >= len(spelt(tc.want)) })
			d.reads(t, tc.want...)
		})
	}
}

// TestReplayOfJunk: replies that cannot be used are counted, and the rest applies.
func TestReplayOfJunk(t *testing.T) {
	pub := serve(t, "PUB", func(int, net.Conn) bool { return true })
	router := serve(t, "ROUTER", func(_ int, c net.Conn) bool {
		replies(c, 0, 0, 1)
		_, _ = c.Write(zmtp("junk"))
		replies(c, 0, 0, 2)
		_, _ = c.Write(zmtp("", "kv", number(events.EndSequence), "not the end"))
		end(c)
		return true
	})
	d, _ := follow(t, source(pub, router), quick())
	d.seen(t, "2=0:2", events.StateLive)
	d.reads(t, "joined 0 complete", "0..2 of 0")
	d.rejected(t, events.ReasonBadReply, 4)
}

// TestRule11_RebuildFindsNothing: whether the publisher was replaced could not be asked when it came back. A replay from the
// beginning that then brings nothing shows that it was.
func TestRule11_RebuildFindsNothing(t *testing.T) {
	taken := make(chan struct{})
	pub := serve(t, "PUB", func(n int, c net.Conn) bool {
		if n == 0 {
			lives(c, 0, 0, 2)
			<-taken
			return false
		}
		return true
	})
	router := serve(t, "ROUTER", func(n int, c net.Conn) bool {
		if n != 1 { // the second question is never answered
			end(c)
		}
		return true
	})
	o := quick()
	o.ReplayIdle, o.ReplayCooldown = 100*time.Millisecond, 100*time.Millisecond
	o.Idle = time.Minute // what serve plays answers no heartbeat, and a lost connection would be asked about anew
	d, _ := follow(t, source(pub, router), o)
	d.seen(t, "2=0:2", events.StateLive)
	close(taken)
	d.wait(t, "the empty life", func() bool { return len(d.entries) == 6 })
	d.state(t, events.StateLive)
	d.reads(t, "joined 0 complete", "0..2 of 0", "reset", "joined 0 complete")
}

// TestRule13_ReplayOfNothingButJunk: an answer that cannot be read does not prove that the publisher has published nothing.
func TestRule13_ReplayOfNothingButJunk(t *testing.T) {
	failed := make(chan struct{})
	pub := serve(t, "PUB", func(_ int, c net.Conn) bool {
		<-failed
		lives(c, 0, 0, 0)
		return true
	})
	router := serve(t, "ROUTER", func(_ int, c net.Conn) bool {
		_, _ = c.Write(zmtp("", "kv", number(0), "0:0", "and more"))
		end(c)
		return true
	})
	d, _ := follow(t, source(pub, router), quick())
	d.wait(t, "the end of the replay", func() bool { return d.rejects[events.ReasonBadReply] == 1 })
	d.wait(t, "state unknown after it", func() bool { n := len(d.states); return n > 1 && d.now() == events.StateUnknown })
	d.reads(t)
	close(failed)
	d.seen(t, "0=0:0", events.StateLive)
	d.reads(t, "joined 0 complete", "0..0 of 0")
}

// patient are quick options for replays that the test holds back.
func patient() stream.Options {
	o := quick()
	o.ReplayIdle = 10 * time.Second
	return o
}

// TestRule8_WildNumber: a number far above all others, as a broken publisher may send, hides the batches after it from
// nobody: those behind it are a new life, not repeats.
func TestRule8_WildNumber(t *testing.T) {
	const wild = 1 << 49
	ready := make(chan struct{})
	pub := serve(t, "PUB", func(_ int, c net.Conn) bool {
		<-ready
		lives(c, 0, 3, 3)
		_, _ = c.Write(zmtp("kv", number(wild), "0:4"))
		lives(c, 0, 5, 9)
		return true
	})
	router := serve(t, "ROUTER", func(n int, c net.Conn) bool {
		replies(c, 0, []uint64{0, 3, 5, 0, 0}[n], []uint64{2, 5, 5, 9, 9}[n])
		end(c)
		return true
	})
	o := quick()
	o.Idle = time.Hour // a new connection would heal it
	d, _ := follow(t, source(pub, router), o)
	d.seen(t, "2=0:2", events.StateLive)
	close(ready)
	d.seen(t, "9=0:9", events.StateLive)
}

// TestRule11_RebuildIsNotForgotten: what a replay that failed left open is asked for from the beginning when the cool-down
// is over, though the connection was lost meanwhile and a replay from the last batch went well, and again when that fails.
func TestRule11_RebuildIsNotForgotten(t *testing.T) {
	lost := make(chan struct{})
	pub := serve(t, "PUB", func(n int, c net.Conn) bool {
		if n > 0 {
			return true
		}
		<-lost
		lives(c, 0, 5, 5)
		_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond)) // within the cool-down
		_, _ = io.Copy(io.Discard, c)
		return false
	})
	router := serve(t, "ROUTER", func(n int, c net.Conn) bool {
		switch n {
		case 0:
			replies(c, 0, 0, 2)
		case 1, 3: // for the hole; the first rebuild
			_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			_, _ = io.ReadFull(c, make([]byte, 150)) // the request must be read, or closing resets the connection
			return false
		case 2: // at the new connection
			replies(c, 0, 5, 5)
		default:
			replies(c, 0, 0, 6)
		}
		end(c)
		return true
	})
	o := quick()
	o.ReplayCooldown, o.Idle = time.Second, time.Hour
	d, _ := follow(t, source(pub, router), o)
	d.seen(t, "2=0:2", events.StateLive)
	close(lost)
	d.seen(t, "6=0:6", events.StateLive)
	d.reads(t, "joined 0 complete", "0..2 of 0", "gap 3-4", "joined 5 partial", "5..5 of 0", "reset", "joined 0 complete", "0..6 of 0")
}
