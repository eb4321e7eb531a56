package zmq_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events/zmq"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
)

// crowd dials from many strangers at once. Each shakes hands, claims a frame of size bytes, sends sent of them and waits
// for its end, which the count tells.
func crowd(t *testing.T, address string, n, size, sent int) *sync.WaitGroup {
	t.Helper()
	head := binary.BigEndian.AppendUint64(append(zmqtest.Hello("PUB"), 2), uint64(size))
	body := make([]byte, sent)
	wg := new(sync.WaitGroup)
	for range n {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		wg.Go(func() { // ends when the receiver or the cleanup closes c
			_, _ = c.Write(head)
			_, _ = c.Write(body)
			zmqtest.Play(c, zmqtest.Attack{}, 20*time.Second)
		})
	}
	return wg
}

// TestRule17_ClaimsTakeNoMemory: 200 strangers that claim 16 MiB each and send nothing cost nothing.
func TestRule17_ClaimsTakeNoMemory(t *testing.T) {
	port := freePort(t)
	c := newCollector()
	o := fast(endpoint(t, "tcp://*:"+port))
	o.Budget, o.MessageTime, o.Handshake = zmq.NewBudget(8<<20), 500*time.Millisecond, 10*time.Second
	run(t, func(ctx context.Context) error { return zmq.Listen(ctx, o, c) })
	p := zmqtest.Start(t)
	p.Do("open", zmqtest.Args{"pub": "tcp://127.0.0.1:" + port, "connect": true})
	p.Do("wait", nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	crowd(t, "127.0.0.1:"+port, 200, 16<<20, 0).Wait() // cut off by MessageTime
	runtime.ReadMemStats(&after)
	// Of 200 connections each has a reader, a first buffer of 64 KiB and the test's own end.
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 200*(400<<10) {
		t.Errorf("%d bytes were allocated", grown)
	}
	p.Do("publish", nil)
	c.wait(t, "message", func() bool { return c.messages() == 1 })
	c.locked(func() {
		if len(c.up) != 1 || !slices.ContainsFunc(c.downs, func(err error) bool { return errors.Is(err, zmq.ErrSilent) }) {
			t.Errorf("up %v, downs %v", c.up, c.downs)
		}
	})
}

// TestRule17_BudgetOfAll: strangers that really send their bytes share the budget, and what they took comes back; the
// small messages of the engine pass meanwhile.
func TestRule17_BudgetOfAll(t *testing.T) {
	port := freePort(t)
	c := newCollector()
	o := fast(endpoint(t, "tcp://*:"+port))
	o.Budget, o.MessageTime, o.Handshake = zmq.NewBudget(8<<20), time.Second, 10*time.Second
	run(t, func(ctx context.Context) error { return zmq.Listen(ctx, o, c) })
	p := zmqtest.Start(t)
	p.Do("open", zmqtest.Args{"pub": "tcp://127.0.0.1:" + port, "connect": true})
	p.Do("wait", nil)
	ended := crowd(t, "127.0.0.1:"+port, 32, 16<<20, 4<<20)
	c.wait(t, "a full budget", func() bool {
		return slices.ContainsFunc(c.downs, func(err error) bool { return errors.Is(err, zmq.ErrFull) })
	})
	if used := o.Budget.Used(); used > 8<<20 {
		t.Errorf("%d bytes of the budget are used", used)
	}
	p.Do("publish", zmqtest.Args{"n": 100})
	c.wait(t, "messages", func() bool { return c.messages() == 100 })
	ended.Wait()
	c.wait(t, "ends", func() bool { return len(c.up) == 1 })
	if used := o.Budget.Used(); used != 0 {
		t.Errorf("%d bytes were not given back", used)
	}
}
