package turn_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/kvscout/kvscout/scorer/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const maxWait = 50 * time.Millisecond

// crew is those who wait in a queue all of whose turns are taken.
type crew struct {
	*testing.T
	*turn.Queue
	turns, few int

	mu  sync.Mutex // guards got and lost
	got []int      // who got a turn, in order; they keep it
	no  []int      // who was refused
}

// busy makes a queue without a turn left. It is for a bubble of synctest, in which time passes only when all sleep.
func busy(t *testing.T, o turn.Options) *crew {
	t.Helper()
	n := runtime.GOMAXPROCS(0)
	c := &crew{T: t, Queue: turn.New(o), turns: turn.AtWork * n, few: turn.Few * n}
	for range c.turns {
		if err := c.Enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// come lets numbers from to to-1 wait, one after the other.
func (c *crew) come(ctx context.Context, from, to int) {
	for i := from; i < to; i++ {
		go func() { // ends with its turn or refusal; the bubble waits for it
			err := c.Enter(ctx)
			c.mu.Lock()
			defer c.mu.Unlock()
			switch {
			case err == nil:
				c.got = append(c.got, i)
			case errors.Is(err, turn.ErrCrowded):
				c.no = append(c.no, i)
			case ctx.Err() == nil:
				c.Errorf("%d: %v", i, err)
			}
		}()
		synctest.Wait()
	}
}

// leaves ends n turns, of which each is given before the next ends.
func (c *crew) leaves(n int) {
	for range n {
		c.Leave()
		synctest.Wait()
	}
}

// are says who should have a turn by now, and who should be refused.
func (c *crew) are(got, no []int) {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.no) // refused at one time
	if !slices.Equal(c.got, got) || !slices.Equal(c.no, no) {
		c.Errorf("%v have a turn and %v are refused, want %v and %v", c.got, c.no, got, no)
	}
}

func numbers(from, to int) (out []int) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// Invariant 1, and turns are as many as they were.
func TestQueue_InOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := busy(t, turn.Options{})
		c.come(t.Context(), 0, 20)
		if c.Waiting() != 20 || c.Working() != c.turns {
			t.Errorf("%d wait, %d work", c.Waiting(), c.Working())
		}
		c.leaves(12)
		c.are(numbers(0, 12), nil)
		c.leaves(8 + c.turns)
		c.are(numbers(0, 20), nil)
		if c.Waiting() != 0 || c.Working() != 0 {
			t.Errorf("at the end %d wait, %d work", c.Waiting(), c.Working())
		}
	})
}

// Invariant 2: whoever has waited too long is refused when a turn is given, but for a few; whoever comes meanwhile at once.
func TestQueue_NotForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := busy(t, turn.Options{MaxWait: maxWait})
		many := c.few + 10
		c.come(t.Context(), 0, many)
		time.Sleep(maxWait)
		if c.Crowded() {
			t.Error("crowded before MaxWait has passed")
		}
		c.come(t.Context(), many, many+1) // the last that may
		time.Sleep(time.Millisecond)
		if !c.Crowded() {
			t.Error("not crowded after MaxWait")
		}
		c.come(t.Context(), 1000, 1001)
		c.are(nil, []int{1000})
		c.leaves(1)
		c.are([]int{11}, append(numbers(0, 11), 1000)) // few-1 wait on, the last of whom has waited a millisecond
		if c.Crowded() {
			t.Error("crowded though only a few wait")
		}
		c.leaves(c.few - 1 + c.turns)
		c.are(numbers(11, many+1), append(numbers(0, 11), 1000))
	})
}

// Invariant 2: a few wait however long they do, as where each call takes long.
func TestQueue_AFewMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := busy(t, turn.Options{MaxWait: maxWait})
		c.come(t.Context(), 0, c.few-1)
		time.Sleep(100 * maxWait)
		if c.Crowded() {
			t.Error("crowded")
		}
		c.come(t.Context(), c.few-1, c.few)
		c.leaves(c.few + c.turns)
		c.are(numbers(0, c.few), nil)
	})
}

// Invariant 3.
func TestQueue_NotTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := busy(t, turn.Options{MaxWaiting: 3})
		c.come(t.Context(), 0, 5)
		c.are(nil, []int{3, 4})
		c.leaves(1)
		c.come(t.Context(), 5, 7)
		c.are([]int{0}, []int{3, 4, 6})
		c.leaves(3 + c.turns)
		c.are([]int{0, 1, 2, 5}, []int{3, 4, 6})
	})
}

// Invariant 4: whoever gives up is told why, and leaves no place behind.
func TestQueue_ContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := busy(t, turn.Options{MaxWait: maxWait})
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		c.come(t.Context(), 0, 1)
		go func() { done <- c.Enter(ctx) }() // ended by cancel, waited for on done
		synctest.Wait()
		c.come(t.Context(), 1, 2+c.few)
		cancel(why)
		if err := <-done; !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		if c.Waiting() != 1+1+c.few {
			t.Errorf("%d wait", c.Waiting())
		}
		c.leaves(2 + c.few + c.turns)
		c.are(numbers(0, 2+c.few), nil)
		if c.Working() != 0 {
			t.Errorf("%d work at the end", c.Working())
		}
	})
}

// Under callers that come, give up and leave as they like no more work than may, and no turn is lost.
func TestQueue_LosesNoTurn(t *testing.T) {
	q := turn.New(turn.Options{MaxWait: time.Millisecond, MaxWaiting: 40})
	turns := turn.AtWork * runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for i := range 64 {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		wg.Go(func() { // ends by itself, waited for below
			for range 300 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(300))*time.Microsecond)
				if q.Enter(ctx) == nil {
					if n := q.Working(); n > turns {
						t.Errorf("%d of %d work", n, turns)
					}
					if random.IntN(4) == 0 {
						time.Sleep(time.Duration(random.IntN(100)) * time.Microsecond)
					}
					q.Leave()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if q.Working() != 0 || q.Waiting() != 0 || q.Crowded() {
		t.Errorf("at the end %d work, %d wait", q.Working(), q.Waiting())
	}
	if err := q.Enter(t.Context()); err != nil {
		t.Error(err)
	}
}

// Without a queue nobody waits.
func TestQueue_Nil(t *testing.T) {
	var q *turn.Queue
	if q.Crowded() || q.Enter(t.Context()) != nil || q.Waiting() != 0 {
		t.Error("somebody waits")
	}
	q.Leave()
}

// The goroutines that are ready to run are seen: of more calls than processors, none of which waits for anything, some wait for
// their turn.
func TestQueue_SeesWhoIsReady(t *testing.T) {
	q := turn.New(turn.Options{})
	most := make(chan int, 1)
	most <- 0
	var wg sync.WaitGroup
	callers := 32 * runtime.GOMAXPROCS(0)
	for range callers {
		wg.Go(func() { // ends by itself, waited for below
			for range 20 {
				if err := q.Enter(t.Context()); err != nil {
					continue
				}
				for begin := time.Now(); time.Since(begin) < 100*time.Microsecond; { // work
				}
				most <- max(<-most, q.Waiting())
				q.Leave()
			}
		})
	}
	wg.Wait()
	if n := <-most; n < callers/2 {
		t.Errorf("%d of %d calls were seen to wait", n, callers)
	}
}

func BenchmarkTurn(b *testing.B) {
	q := turn.New(turn.Options{})
	for b.Loop() {
		_ = q.Crowded()
		if err := q.Enter(b.Context()); err != nil {
			b.Fatal(err)
		}
		q.Leave()
	}
}

// BenchmarkTurnAmong32 is the same among 32 who do nothing else.
func BenchmarkTurnAmong32(b *testing.B) {
	q := turn.New(turn.Options{MaxWait: time.Minute})
	b.SetParallelism(32 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if q.Enter(b.Context()) == nil {
				q.Leave()
			}
		}
	})
}
