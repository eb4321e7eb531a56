package stream_test

import (
	"bytes"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/stream"
	"github.com/kvscout/kvscout/events/zmq"
	"github.com/kvscout/kvscout/events/zmq/zmqtest"
)

// TestRule17_HostilePeersDoNotDisturb: attacks on a bound port, while a publisher there is heard in full. Those that do not
// finish the handshake are counted as refused.
func TestRule17_HostilePeersDoNotDisturb(t *testing.T) {
	port := freePort(t)
	o := quick()
	o.Listeners = stream.NewListeners()
	d, _ := follow(t, source("tcp://*:"+port, ""), o)
	p := dialler(t, port, "kv")
	p.Do("wait", nil)
	var wg sync.WaitGroup
	strangers := uint64(0)
	for _, a := range zmqtest.Attacks("PUB") {
		if !bytes.HasPrefix(a.Bytes, zmqtest.Hello("PUB")) {
			strangers++
		}
		wg.Go(func() { // ends with the connection, waited for below
			if !zmqtest.Strike(t, "tcp", "127.0.0.1:"+port, a, 10*time.Second) {
				t.Errorf("%s: connection stays open", a.Name)
			}
		})
	}
	p.Do("publish", zmqtest.Args{"n": 500})
	d.seen(t, "499=0:499", events.StateLive)
	wg.Wait()
	p.Do("publish", nil)
	d.seen(t, "500=0:500", events.StateLive)
	d.reads(t, "joined 0 complete", "0..500 of 0")
	waitFor(t, "count", func() bool { return o.Listeners.Refused() == strangers })
	d.rejected(t, events.ReasonHandshake, 0)
}

// TestRule17_EndpointWithoutHandshake: what is at the engine's port is no publisher. Each attempt is counted for the source.
func TestRule17_EndpointWithoutHandshake(t *testing.T) {
	at := zmqtest.Stage(t, zmqtest.Attack{Name: "no handshake", Bytes: make([]byte, 64)})
	d, _ := follow(t, source("tcp://"+at, ""), quick())
	d.wait(t, "two attempts", func() bool { return d.rejects[events.ReasonHandshake] >= 2 })
	d.locked(func() {
		if d.now() != events.StateConnecting || !errors.Is(d.whys[len(d.whys)-1], zmq.ErrHandshake) {
			t.Errorf("%v, %v", d.states, d.whys)
		}
	})
}

// TestControl_Replay: the replay endpoint is not dialled where Control refuses it.
func TestControl_Replay(t *testing.T) {
	port, replay := freePort(t), freePort(t)
	asked := make(chan string, 1)
	o := quick()
	o.Control = func(_, address string, _ syscall.RawConn) error {
		select {
		case asked <- address:
		default:
		}
		return errors.New("refused")
	}
	d, _ := follow(t, source("tcp://*:"+port, "tcp://127.0.0.1:"+replay), o)
	p := dialler(t, port, "kv")
	p.Do("wait", nil)
	if got, want := <-asked, "127.0.0.1:"+replay; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	p.Do("publish", nil)
	d.seen(t, "0=0:0", events.StateLive)
}
