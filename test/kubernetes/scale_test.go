//go:build kubernetes

package kubernetes

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events/simulate"
	"github.com/kvscout/kvscout/events/stream"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// 500 pods come, by halves and with the API server restarted between, half of them go: each worker that is named is
// subscribed once and never twice, and nothing is left behind.
func TestPods500(t *testing.T) {
	const pods = 520 // more than one page of a list
	a := startAPI(t)
	engines := make([]*simulate.Engine, 4) // one publisher serves 256 peers
	var bound []string
	for i := range engines {
		e, err := simulate.New(simulate.Config{Worker: "any", Model: "m", Events: "tcp://127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		engines[i] = e
		bound = append(bound, strings.TrimPrefix(e.Source().Events, "tcp://"))
	}
	subscribers := func() (n int) {
		for _, e := range engines {
			n += e.Stats().Subscribers
		}
		return n
	}
	p := startProxy(t, "0.0.0.0:0", bound...) // every pod has a loopback address of its own, and this port
	_, port, err := net.SplitHostPort(p.address)
	if err != nil {
		t.Fatal(err)
	}
	fleet := ingest.New(indexer.New(indexer.Options{}), ingest.Options{Stream: stream.Options{}})
	t.Cleanup(fleet.Close)
	r := discoverBy(t, byPods(a.config("")), fleet.Discovered, fleet.Health)

	add := func(from, to int) {
		t.Helper()
		var wg sync.WaitGroup
		for k := range 8 { // ends with its share; waited for below
			wg.Go(func() {
				for i := from + k; i < to; i += 8 {
					name := "p" + strconv.Itoa(i)
					a.create(pod(name, stated("events-port", port)))
					a.running(name, fmt.Sprintf("127.1.%d.%d", i/250, i%250+1), true)
				}
			})
		}
		wg.Wait()
	}
	subscribed := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(patience); p.count() != n || len(fleet.Workers()) != n || subscribers() != n; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d connections, %d subscribers and %d workers, want %d of each", p.count(), subscribers(), len(fleet.Workers()), n)
			}
		}
	}
	start := time.Now()
	add(0, pods/2)
	subscribed(pods / 2)
	a.kill()
	a.start()
	add(pods/2, pods)
	subscribed(pods)
	t.Logf("%d pods subscribed %v after the first was created, with a restart between", pods, time.Since(start))
	late := discoverBy(t, byPods(a.config("")), nil, nil)
	late.wait("all pods in one report", func() bool { return len(late.last.Workers) == pods && late.status().Reports == 1 })
	late.stop()
	for i := range pods / 2 {
		a.remove("p" + strconv.Itoa(i))
	}
	subscribed(pods - pods/2)
	for i := pods / 2; i < pods; i++ {
		a.remove("p" + strconv.Itoa(i))
	}
	subscribed(0)
	r.stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.most) != pods {
		t.Errorf("%d addresses were dialled, want %d", len(p.most), pods)
	}
	for ip, most := range p.most {
		if most != 1 {
			t.Errorf("%s had %d connections at once", ip, most)
		}
	}
}
