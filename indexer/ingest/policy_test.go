package ingest

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
)

// listener is a port of the loopback and what has connected to it.
func listener(t *testing.T) (port string, connected <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	seen, done := make(chan struct{}, 1), make(chan struct{})
	go func() { // ends when l is closed, waited for in the cleanup
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
			select {
			case seen <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, seen
}

// An endpoint at an address that no engine can have is refused as it is registered, for the live stream and the replay, and
// changes nothing of a worker that was known.
func TestPolicy_RefusedAddresses(t *testing.T) {
	r := newRig(t, Options{})
	r.register(worker("w", "m", 1))
	r.push("w", 0, 0, stores(t, 1, 2))
	for _, host := range []string{"169.254.169.254", "[::ffff:169.254.169.254]", "[fe80::1]", "100.100.100.200", "[fd00:ec2::254]", "224.0.0.1"} {
		for name, edit := range map[string]func(*events.Source){
			"events": func(s *events.Source) { s.Events = "tcp://" + host + ":5557" },
			"replay": func(s *events.Source) { s.Events, s.Replay = "tcp://10.0.0.1:5557", "tcp://"+host+":5558" },
			"polled": func(s *events.Source) { s.Engine, s.Events = events.EngineTRTLLM, "http://"+host+"/kv_cache_events" },
		} {
			w := worker("w", "m", 2)
			edit(&w.Sources[1])
			if _, err := r.fleet.Register(w); !errors.Is(err, ErrWorker) || !errors.Is(err, discover.ErrRefused) {
				t.Errorf("%s at %s: %v", name, host, err)
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"w/0": 8}, r.held("m", 1, 2)); diff != "" {
		t.Error(diff)
	}
}

// A name that leads to an address that is not allowed is not dialled; the source says why.
func TestPolicy_RefusedBehindAName(t *testing.T) {
	inside, err := discover.ParsePolicy([]string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	port, connected := listener(t)
	r := newRig(t, Options{Policy: inside})
	w := worker("w", "m", 1)
	w.Sources[0].Events = "tcp://localhost:" + port
	r.register(w)
	l, _ := r.index.Find("w", 0)
	until(t, "refused", func() bool { return strings.Contains(l.Freshness().Why, discover.ErrRefused.Error()) })
	r.fleet.Close()
	select {
	case <-connected:
		t.Error("a connection was made")
	default:
	}
	w.Sources[0].Events = "tcp://127.0.0.1:" + port
	r = newRig(t, Options{Policy: inside})
	if _, err := r.fleet.Register(w); !errors.Is(err, discover.ErrRefused) {
		t.Errorf("outside of the networks: %v", err)
	}
	r = newRig(t, Options{})
	r.register(w)
	<-connected // as it is by default
}
