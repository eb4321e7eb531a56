package stream_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/stream"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
)

// epochOfTests is the epoch of zmqtest publishers that send one.
const epochOfTests = "01020304050607080910111213141516"

// goOn follows src behind batch seq of a life. "proven" is an entry of the diary.
func goOn(t *testing.T, src events.Source, o stream.Options, life int, seq uint64, epoch string) *diary {
	t.Helper()
	raw, err := hex.DecodeString(epoch)
	if err != nil {
		t.Fatal(err)
	}
	c := events.CursorAt(seq, fmt.Appendf(nil, "%d:%d", life, seq), time.Now())
	c.Epoch = string(raw)
	d := newDiary()
	s, err := stream.New(src, d, o)
	if err != nil {
		t.Fatal(err)
	}
	s.Resume(c, func() { d.note("proven") })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // ended by cancel, waited for in the cleanup
		defer close(done)
		_ = s.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return d
}

// What a replay shows of a publisher that was heard by another process up to a cursor (rules 8 and 11).
func TestRule11_ResumeWithReplay(t *testing.T) {
	for _, tc := range []struct {
		name   string
		ring   int
		sent   int // batches before we come
		cursor uint64
		life   int
		last   string
		state  events.State
		want   []string
		asked  []uint64
	}{
		{"same engine", 100, 9, 5, 0, "8=0:8", events.StateLive, []string{"proven", "6..8 of 0"}, []uint64{5}},
		{"nothing missed", 100, 6, 5, 0, "proven", events.StateLive, []string{"proven"}, []uint64{5}},
		{"started again, not as far", 100, 3, 5, 7, "2=0:2", events.StateLive, []string{"reset", "joined 0 complete", "0..2 of 0"}, []uint64{5, 0}},
		{"started again, nothing yet", 100, 0, 5, 7, "joined 0 complete", events.StateLive, []string{"reset", "joined 0 complete"}, []uint64{5, 0}},
		{"started again, the same number", 100, 6, 5, 7, "5=0:5", events.StateLive, []string{"reset", "joined 0 complete", "0..5 of 0"}, []uint64{5, 0}},
		{"started again, further", 100, 9, 5, 7, "8=0:8", events.StateLive, []string{"reset", "joined 0 complete", "0..8 of 0"}, []uint64{5, 0}},
		{"replay begins behind the cursor", 3, 9, 5, 0, "8=0:8", events.StateLive, []string{"reset", "joined 6 partial", "6..8 of 0"}, []uint64{5}},
		{"replay does not reach the cursor", 3, 12, 5, 0, "11=0:11", events.StateGap, []string{"gap 6-8", "joined 9 partial", "9..11 of 0"}, []uint64{5}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, at := engine(t, zmqtest.Args{"ring": tc.ring})
			if tc.sent > 0 {
				p.Do("publish", zmqtest.Args{"n": tc.sent, "live": false})
			}
			d := goOn(t, source(at.Pub, at.Replay), patient(), tc.life, tc.cursor, "")
			d.seen(t, tc.last, tc.state)
			d.reads(t, tc.want...)
			// And it goes on live. Nothing is asked for again, nor told again.
			p.Do("wait", nil)
			p.Do("publish", nil)
			d.seen(t, fmt.Sprintf("%d=0:%d", tc.sent, tc.sent), tc.state)
			d.reads(t, append(tc.want, fmt.Sprintf("%d..%d of 0", tc.sent, tc.sent))...)
			asked(t, p, tc.asked...)
		})
	}
}

// A reply that cannot be read may be the one that was asked for: the replay did not show where the publisher's buffer
// begins, so everything is asked for once.
func TestRule11_ResumeWithAReplyThatCannotBeRead(t *testing.T) {
	pub := serve(t, "PUB", func(int, net.Conn) bool { return true })
	router := serve(t, "ROUTER", func(n int, c net.Conn) bool {
		if n == 0 {
			_, _ = c.Write(zmtp("junk"))
			replies(c, 0, 6, 8)
		} else {
			replies(c, 0, 0, 8)
		}
		end(c)
		return true
	})
	d := goOn(t, source(pub, router), patient(), 0, 5, "")
	d.seen(t, "joined 0 complete", events.StateLive)
	d.reads(t, "reset", "joined 6 partial", "6..8 of 0", "reset", "joined 0 complete", "0..8 of 0")
	d.rejected(t, events.ReasonBadReply, 1)
}

// Only what is missing is asked for, with the cursor's batch as the proof.
func TestRule8_ResumeAsksForWhatIsMissing(t *testing.T) {
	p, at := engine(t, nil)
	p.Do("publish", zmqtest.Args{"n": 50, "live": false})
	d := goOn(t, source(at.Pub, at.Replay), quick(), 0, 41, "")
	d.seen(t, "49=0:49", events.StateLive)
	d.reads(t, "proven", "42..49 of 0")
	asked(t, p, 41)
	d.wait(t, "the count", func() bool { return d.replayed == 8 })
}

// Without a replay the next number goes on, unproven; an epoch proves it or shows another life; any other number is a gap
// or a restart.
func TestRule11_ResumeWithoutReplay(t *testing.T) {
	other := "ff" + epochOfTests[2:]
	for _, tc := range []struct {
		name  string
		start int    // the publisher's next number
		epoch string // of the publisher
		saved string
		state events.State
		want  []string
	}{
		{"next number", 6, "", "", events.StateLive, []string{"6..6 of 0"}},
		{"next number, same epoch", 6, epochOfTests, epochOfTests, events.StateLive, []string{"6=0:6", "proven"}},
		{"next number, other epoch", 6, epochOfTests, other, events.StateLive, []string{"reset", "joined 6 partial", "6..6 of 0"}},
		{"the number of the cursor again", 5, "", "", events.StateLive, []string{"reset", "joined 5 partial", "5..5 of 0"}},
		{"fallen", 0, "", "", events.StateLive, []string{"reset", "joined 0 complete", "0..0 of 0"}},
		{"further", 8, "", "", events.StateGap, []string{"gap 6-7", "joined 8 partial", "8..8 of 0"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := zmqtest.Start(t)
			at := p.Do("open", zmqtest.Args{"start": tc.start, "epoch": tc.epoch})
			d := goOn(t, source(at.Pub, ""), quick(), 0, 5, tc.saved)
			p.Do("wait", nil)
			d.state(t, events.StateUnknown)
			p.Do("publish", nil)
			d.seen(t, fmt.Sprintf("%d=0:%d", tc.start, tc.start), tc.state)
			if tc.epoch == tc.saved && tc.epoch != "" {
				d.wait(t, "the proof", func() bool { return slices.Contains(d.entries, "proven") })
			}
			d.reads(t, tc.want...)
		})
	}
}

// Rule 12: a publisher that shows nothing within StaleAfter is not credited any more, connected or not; when it speaks it
// is taken up again.
func TestRule12_ResumeOfASilentPublisher(t *testing.T) {
	o := quick()
	o.StaleAfter = 50 * time.Millisecond
	p := zmqtest.Start(t)
	at := p.Do("open", zmqtest.Args{"start": 6})
	d := goOn(t, source(at.Pub, ""), o, 0, 5, "")
	p.Do("wait", nil)
	d.state(t, events.StateStale)
	p.Do("publish", nil)
	d.seen(t, "6=0:6", events.StateLive)
	d.reads(t, "6..6 of 0")
}

// A replay that fails is asked for again, from the cursor and not from the beginning.
func TestRule11_ResumeAfterAFailedReplay(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprint("keep on gap ", keep), func(t *testing.T) {
			pub := serve(t, "PUB", func(int, net.Conn) bool { return true })
			router := serve(t, "ROUTER", func(n int, c net.Conn) bool {
				if n > 0 {
					replies(c, 0, 5, 7)
					end(c)
				}
				return true // the first question is never answered
			})
			o := quick()
			o.ReplayIdle, o.ReplayCooldown, o.KeepOnGap = 100*time.Millisecond, 50*time.Millisecond, keep
			o.Idle = time.Minute // what serve plays answers no heartbeat
			d := goOn(t, source(pub, router), o, 0, 5, "")
			d.seen(t, "7=0:7", events.StateLive)
			d.reads(t, "proven", "6..7 of 0")
		})
	}
}

// A batch that came since is no proof of what was before the cursor, though it shows that a lost connection came back to
// the same publisher.
func TestRule11_ResumeIsNotProvenByALaterBatch(t *testing.T) {
	taken := make(chan struct{})
	pub := serve(t, "PUB", func(n int, c net.Conn) bool {
		if n > 0 {
			return true
		}
		lives(c, 0, 6, 6)
		<-taken
		return false // the connection is lost
	})
	router := serve(t, "ROUTER", func(n int, c net.Conn) bool {
		if n > 0 {
			replies(c, 0, 6, 8)
			end(c)
		}
		return true // the first question is never answered
	})
	o := quick()
	o.ReplayIdle, o.Idle = 100*time.Millisecond, time.Minute
	d := goOn(t, source(pub, router), o, 0, 5, "")
	d.seen(t, "6=0:6", events.StateLive)
	close(taken)
	d.seen(t, "8=0:8", events.StateLive)
	d.reads(t, "6..8 of 0")
}
