package service

import (
	"flag"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"connectrpc.com/connect"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/bench"
)

var overloadFor = flag.Duration("service.overload", 2*time.Second, "how long the server is asked for more than it can do")

// What an overload is made of: answers are long, so that the server has to work for them, and requests short, so that more can be
// sent than it can do.
const (
	overloadTokens  = 1024
	overloadWorkers = 512
	overloadCalls   = 4   // under way at once, at most
	overloadSlow    = 3   // of them are of callers who never send their body
	overloadCallers = 256 // who ask
	overloadTimes   = 10  // the rate that the server can bear
)

// flat is how much the server's memory may grow in the second half of an overload.
const flat = 128 << 20

// hurried is a phase of an overload.
func (s *server) hurried(t *testing.T, w *bench.Workload, c bench.Client, l bench.Load) bench.Report {
	t.Helper()
	callers, end, err := w.Callers(bench.Target{Network: "tcp", Address: s.addr}, c)
	if err != nil {
		t.Fatal(err)
	}
	l.ServerPID = s.cmd.Process.Pid
	r := bench.Run(t.Context(), callers, l)
	if err := end(); err != nil {
		t.Error(err)
	}
	return r
}

// access is what the server tells of calls.
func (s *server) access(t *testing.T) *kvscoutv1.AccessStats {
	t.Helper()
	var out *kvscoutv1.AccessStats
	eventually(t, func() string { // what the callers left under way may take all room for a moment
		res, err := s.index.GetStats(t.Context(), connect.NewRequest(&kvscoutv1.GetStatsRequest{}))
		if err != nil {
			return "statistics: " + err.Error()
		}
		out = res.Msg.GetStats().GetAccess()
		return ""
	})
	return out
}

// Ten times the rate that the server can bear, as far as the machine can send that much beside: what it does not take it refuses by the right name, what it takes it answers right,
// its memory stays flat, and once the load is gone every call is answered at once (rule 17).
func TestRule17_Overload(t *testing.T) {
	for _, c := range []bench.Client{
		{Protocol: bench.ProtocolConnect, Connections: overloadCallers},
		{Protocol: bench.ProtocolGRPC, Stock: true, Connections: 16},
	} {
		t.Run(string(c.Protocol), func(t *testing.T) {
			s := serve(t, "--max-calls", fmt.Sprint(overloadCalls), "--log-level", "warn")
			w, err := bench.New(overloadTokens, overloadWorkers, 4, 1)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Fill(t.Context(), s.index, nil); err != nil {
				t.Fatal(err)
			}
			calm, many := c, c
			calm.Callers, many.Callers = 2, overloadCallers
			bearable := s.hurried(t, w, calm, bench.Load{Warmup: 200 * time.Millisecond, During: 800 * time.Millisecond})
			if bearable.Errors > 0 || bearable.Calls == 0 {
				t.Fatalf("before: %d answers, errors %v: %v", bearable.Calls, bearable.Reasons, bearable.First)
			}
			slow := s.slowly(t)
			load := bench.Load{During: *overloadFor / 2, Rate: overloadTimes * bearable.Requests, Impatient: true}
			first := s.hurried(t, w, many, load)
			before := s.resident(t)
			second := s.hurried(t, w, many, load)
			after := s.resident(t)
			refused := uint64(0)
			for half, r := range []bench.Report{first, second} {
				t.Logf("half %d: %.0f calls/s offered, %.1f times what is borne; %.0f answered, p99 %.1f ms (before: %.0f, p99 %.1f ms); refused %v; %d MiB",
					half+1, (float64(r.Calls)+float64(r.Errors))/r.Seconds, (float64(r.Calls)+float64(r.Errors))/r.Seconds/bearable.Requests,
					r.Requests, r.P99/1000, bearable.Requests, bearable.P99/1000, r.Reasons, []int{before, after}[half]>>20)
				refused += r.Reasons["OVERLOADED"]
				if r.Reasons["OVERLOADED"] != r.Errors {
					t.Errorf("other errors than refusals: %v, the first %v", r.Reasons, r.First)
				}
				if r.Calls == 0 {
					t.Error("nothing was answered")
				}
			}
			if refused == 0 {
				t.Error("nothing was refused: this proves nothing")
			}
			if told := s.access(t).GetRefused()["OVERLOADED"]; told < refused {
				t.Errorf("the server tells of %d refusals, callers saw %d", told, refused)
			}
			if after > before+flat {
				t.Errorf("memory grew from %d to %d MiB", before>>20, after>>20)
			}
			for _, conn := range slow {
				conn.Close()
			}
			eventually(t, func() string { // the server has seen that they went
				if n := s.access(t).GetCalls(); n > 1 {
					return fmt.Sprintf("no call under way; %d are", n-1)
				}
				return ""
			})
			s.recovers(t, w, calm)
		})
	}
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
		if n := s.access(t).GetCalls(); n < overloadSlow+1 { // and the call that asks
			return fmt.Sprintf("%d slow calls under way; %d are", overloadSlow, n)
		}
		return ""
	})
	return out
}

// recovers makes calls as soon as the load is gone: each is answered right, the first one too.
func (s *server) recovers(t *testing.T, w *bench.Workload, c bench.Client) {
	t.Helper()
	callers, end, err := w.Callers(bench.Target{Network: "tcp", Address: s.addr}, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range callers {
		for n := range 50 {
			if err := c.Call(t.Context(), n); err != nil {
				t.Fatalf("call %d after the load: %v", n, err)
			}
		}
		c.Close()
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}
