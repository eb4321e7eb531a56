package service

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/bench"
)

var overloadFor = flag.Duration("service.overload", 3*time.Second, "how long the server is asked for more than it can do")

const (
	// overloadTimes is how much more than the server can bear is offered, and overloadAim what is aimed at.
	overloadTimes, overloadAim = 10, 11.5
	overloadCallers            = 1024
	// overloadSlow calls are under way whose bodies never come: more than work at once.
	overloadSlow = 8
	// overloadCalls and overloadWait are the server's bounds, its defaults on one processor.
	overloadCalls = 128
	overloadWait  = 50 * time.Millisecond
	// overloadFew calls may wait however long they do.
	overloadFew = 8
	// Of memory a call of a few hundred bytes may take overloadPerCall, and a connection overloadPerConnection; overloadGarbage percent of the
	// live heap are garbage before the collector begins, and overloadLitter when it has ended, late by a tenth of the heap as it may be. An
	// overload may leave overloadKept behind.
	overloadPerCall       = 128 << 10
	overloadPerConnection = 32 << 10
	overloadGarbage       = 25
	overloadLitter        = 38
	overloadKept          = 16 << 20
	// overloadSlack is how many times as long as its wait may be a call may take, and overloadUseful the least share of the server's
	// processor time that goes into answers.
	overloadSlack  = 6
	overloadUseful = 0.1
	// overloadTries is how often the machine may be busy with something else.
	overloadTries = 3
)

// Ten times the rate that the server can bear, in an open loop: what it does not take it refuses by the right name, what it takes it
// answers right and within the time that follows from its bounds; a good part of what it can do gets done, its memory stays flat,
// health and operators' calls are answered meanwhile, and once the load is gone every call is answered at once (rule 17).
func TestRule17_Overload(t *testing.T) {
	for name, by := range map[string]callers{"connect": (*dear).connect, "grpc": (*dear).grpc} {
		t.Run(name, func(t *testing.T) {
			// One processor, so that the other is the client's.
			admin := filepath.Join(t.TempDir(), "admin")
			s := serveIn(t, []string{"GOMAXPROCS=1", fmt.Sprint("GOGC=", overloadGarbage)},
				"--log-level", "warn", "--max-wait", overloadWait.String(), "--admin-listen", "unix://"+admin)
			o := &overload{T: t, server: s, dear: newDear(t), by: by, admin: unixClient(t, admin)}
			slow := s.slowly(t)
			o.fill(t, s)
			begin, live := o.peak(t), o.live()
			var late []string
			for try := range overloadTries {
				if late = o.press(); len(late) == 0 {
					break
				}
				t.Logf("try %d: %s", try+1, strings.Join(late, "; "))
			}
			if len(late) > 0 {
				t.Errorf("each of %d times, at last: %s", overloadTries, strings.Join(late, "; "))
			}
			grown, most := o.peak(t)-begin, overloadCalls*overloadPerCall+overloadCallers*overloadPerConnection+live*overloadLitter/100
			if t.Logf("memory grew by %d MiB of %d", grown>>20, most>>20); grown > most {
				t.Error("memory grew by more")
			}
			for _, conn := range slow {
				conn.Close()
			}
			o.counted()
			o.recovers()
		})
	}
}

// overload is a server that is asked for more than it can do.
type overload struct {
	*testing.T
	*server
	*dear
	by      callers
	admin   *http.Client // of operators' listener
	refused uint64       // as callers saw it
}

// run lets n callers put a load on the server.
func (o *overload) run(n int, l bench.Load) bench.Report {
	l.ServerPID = o.cmd.Process.Pid
	return bench.Run(o.Context(), o.by(o.dear, o.T, o.addr, n), l)
}

// press offers more than the server can bear, in two halves. It fails the test for what may never be, and says what was not in time,
// which may be the fault of a busy machine.
func (o *overload) press() (late []string) {
	o.Helper()
	borne := o.run(4, bench.Load{Warmup: 200 * time.Millisecond, During: time.Second})
	if borne.Calls == 0 || borne.Errors > 0 {
		o.Fatalf("before: %d answers, errors %v: %v", borne.Calls, borne.Reasons, borne.First)
	}
	var lives []int
	stop := o.operators()
	for range 2 {
		r := o.run(overloadCallers, bench.Load{Warmup: 100 * time.Millisecond, During: *overloadFor / 2, Rate: overloadAim * borne.Requests})
		lives = append(lives, o.live())
		late = append(late, o.judge(borne, r)...)
	}
	late = append(late, stop()...)
	grown := lives[1] - lives[0]
	if o.Logf("%d KiB of the heap are live, %d more than after one half", lives[1]>>10, grown>>10); grown > overloadKept {
		o.Error("the live heap grew by more than may be")
	}
	return late
}

// judge looks at a load whose calls it were.
func (o *overload) judge(borne, r bench.Report) (late []string) {
	o.Helper()
	o.refused += r.Reasons["OVERLOADED"]
	if r.Reasons["OVERLOADED"] != r.Errors {
		o.Errorf("other errors than refusals: %v, the first %v", r.Reasons, r.First)
	}
	if r.Calls == 0 {
		o.Fatalf("nothing was answered; refused %v, the first %v", r.Reasons, r.First)
	}
	times := (float64(r.Calls) + float64(r.Errors)) / r.Seconds / borne.Requests
	// A call that gets its turn has waited for overloadWait and the work of a few others, at the pace at which calls are worked off.
	// Before and after it waits less for the processor. It counts from when it was due, while its caller may have waited for another.
	p99, bound := r.P99/1e3, overloadSlack*(float64(overloadWait.Milliseconds())+1e3*overloadFew/r.Requests)
	useful := *borne.ServerCPU / *r.ServerCPU
	o.Logf("%.1f times the %.0f calls/s that are borne, %.0f/s answered, p50 %.0f ms, p99 %.0f of %.0f ms, slowest %.0f ms; refused %v; the server had %.0f%% of a processor, for answers %.0f%% of that",
		times, borne.Requests, r.Requests, r.P50/1e3, p99, bound, r.Max/1e3, r.Reasons, r.Requests**r.ServerCPU/1e4, 100*useful)
	if times < overloadTimes {
		late = append(late, fmt.Sprintf("only %.1f times of what is borne was offered", times))
	}
	if p99 > bound {
		late = append(late, fmt.Sprintf("the slowest hundredth of what was answered took %.0f ms, over %.0f", p99, bound))
	}
	if useful < overloadUseful {
		late = append(late, fmt.Sprintf("%.0f%% of the processor time went into answers", 100*useful))
	}
	return late
}

// operators asks for health, and for a worker's state, until stop is called, which says what took too long. Each must be answered.
func (o *overload) operators() (stop func() (late []string)) {
	ctx, cancel := context.WithCancel(o.Context())
	health := grpchealth.NewClient(o.client, "http://"+o.addr)
	worker := &kvscoutv1.InspectRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: o.Worker(0)}}
	asked, slowest := 0, time.Duration(0)
	var wg sync.WaitGroup
	wg.Go(func() { // ended by stop, which waits
		for ; ctx.Err() == nil; asked++ {
			begin := time.Now()
			_, err := health.Check(ctx, &grpchealth.CheckRequest{})
			if err == nil {
				_, err = o.index.Inspect(ctx, connect.NewRequest(worker))
			}
			if err != nil && !errors.Is(err, context.Canceled) && ctx.Err() == nil {
				o.Errorf("an operator: %v", err)
			}
			slowest = max(slowest, time.Since(begin))
			time.Sleep(20 * time.Millisecond)
		}
	})
	return func() (late []string) {
		cancel()
		wg.Wait()
		if o.Logf("operators asked %d times, slowest %v", asked, slowest.Round(time.Millisecond)); slowest > 2*time.Second || asked < 3 {
			late = append(late, fmt.Sprintf("operators asked %d times and waited up to %v", asked, slowest))
		}
		return late
	}
}

// counted compares the server's statistics with what callers saw.
func (o *overload) counted() {
	o.Helper()
	st := o.stats(o.T)
	early, late := st.GetAccess().GetRefused()["OVERLOADED"], st.GetScore().GetErrors()["OVERLOADED"]
	o.Logf("%d were refused by their headers, %d while they waited", early, late)
	if early+late < o.refused || early == 0 {
		o.Errorf("callers saw %d refusals", o.refused)
	}
	if a, b := st.GetAccess().GetMaxCalls(), st.GetScore().GetMaxInFlight(); a != overloadCalls || b != overloadCalls {
		o.Errorf("%d and %d calls may be under way, want %d", a, b, overloadCalls)
	}
}

// live is how much of the server's heap is live, in bytes. It is asked when nothing else is, since what comes meanwhile counts.
func (o *overload) live() int {
	o.Helper()
	o.page("/debug/pprof/heap?gc=1") // what lies in pools goes with the second collection
	_, rest, _ := strings.Cut(o.page("/debug/pprof/heap?gc=1&debug=1"), "\n# HeapAlloc = ")
	var bytes int
	if _, err := fmt.Sscan(rest, &bytes); err != nil {
		o.Fatal(err)
	}
	return bytes
}

// page is one of operators' listener.
func (o *overload) page(path string) string {
	o.Helper()
	res, err := o.admin.Get("http://admin" + path)
	if err != nil {
		o.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		o.Fatalf("%s: %s, %v", path, res.Status, err)
	}
	return string(text)
}

// unixClient is a client that dials a socket.
func unixClient(t *testing.T, path string) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// recovers makes calls as soon as the load is gone: each is answered right, the first one too.
func (o *overload) recovers() {
	o.Helper()
	eventually(o.T, func() string { // the server has seen that all went
		if n := o.stats(o.T).GetAccess().GetCalls(); n > 1 {
			return fmt.Sprintf("no call under way; %d are", n-1)
		}
		return ""
	})
	for _, c := range o.by(o.dear, o.T, o.addr, 2) {
		for n := range 50 {
			if err := c.Call(o.Context(), n); err != nil {
				o.Fatalf("call %d after the load: %v", n, err)
			}
		}
		c.Close()
	}
}

func (s *server) stats(t *testing.T) *kvscoutv1.Stats {
	t.Helper()
	res, err := s.index.GetStats(t.Context(), connect.NewRequest(&kvscoutv1.GetStatsRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	return res.Msg.GetStats()
}

// slowly begins calls whose bodies never come, and waits until they are under way.
func (s *server) slowly(t *testing.T) (out []net.Conn) {
	t.Helper()
	for range overloadSlow {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		head := "POST /kvscout.v1.ScoreService/Score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
		if _, err := io.WriteString(conn, head); err != nil {
			t.Fatal(err)
		}
		out = append(out, conn)
	}
	eventually(t, func() string {
		if n := s.stats(t).GetAccess().GetCalls(); n < overloadSlow+1 { // and the call that asks
			return fmt.Sprintf("%d slow calls under way; %d are", overloadSlow, n)
		}
		return ""
	})
	return out
}

// peak is the most memory that the server has had in use, in bytes.
func (s *server) peak(t *testing.T) (bytes int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscan(rest, &bytes); err != nil {
		t.Fatal(err)
	}
	return bytes << 10
}
