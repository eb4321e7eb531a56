package access_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/access"
)

// under waits until so many calls are under way.
func under(t testing.TB, r *rig, n uint64) {
	t.Helper()
	eventually(t, strconv.FormatUint(n, 10)+" calls are under way", func() bool { return r.guard.Stats().GetCalls() == n })
}

// Rule 17: over the bound of routers' calls under way the next is refused before its body, with when to try again; there is room
// again at once. Operators' calls have room of their own, and health is told all the same.
func TestLimit_Calls(t *testing.T) {
	r := start(t, access.Options{Limits: access.Limits{Calls: 2}})
	slow := []net.Conn{begin(t, r, "", 10), begin(t, r, "", 10)}
	under(t, r, 2)
	a := answered(t, begin(t, r, "", 8<<20))
	if a.status != http.StatusTooManyRequests || a.reason() != "OVERLOADED" || a.header.Get("Retry-After") != "1" {
		t.Errorf("a third: %+v", a)
	}
	for name, opts := range protocols {
		calls := r.calls(client(t, nil, true), "", opts...)
		_, err := calls.score.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{}))
		retry := detail[*errdetails.RetryInfo](err)
		if connect.CodeOf(err) != connect.CodeResourceExhausted || reason(t, err) != "OVERLOADED" || retry.GetRetryDelay().AsDuration() <= 0 {
			t.Errorf("%s: %v, %v", name, err, retry)
		}
		res, err := calls.index.GetStats(t.Context(), connect.NewRequest(&kvscoutv1.GetStatsRequest{}))
		if err != nil {
			t.Errorf("%s: statistics: %v", name, err)
		} else if a := res.Msg.GetStats().GetAccess(); a.GetCalls() < 3 || a.GetMaxCalls() != 2 {
			t.Errorf("%s: %v", name, a)
		}
		health := connect.NewClient[message, message](client(t, nil, true), r.url+"/grpc.health.v1.Health/Check", opts...)
		if _, err := health.CallUnary(t.Context(), connect.NewRequest(&message{})); err != nil {
			t.Errorf("%s: health: %v", name, err)
		}
	}
	if got := r.guard.Stats().GetRefused()["OVERLOADED"]; got != 5 {
		t.Errorf("%d were counted", got)
	}
	_ = slow[0].Close()
	under(t, r, 1)
	if got := r.calls(client(t, nil, false), "").scores(); got != "" {
		t.Errorf("with room again: %s", got)
	}
}

// Operators' calls have a bound of their own, which keeps no router out.
func TestLimit_CallsOfOperators(t *testing.T) {
	r := start(t, access.Options{Limits: access.Limits{Calls: 2}})
	c := r.calls(client(t, nil, true), "")
	for range 2 {
		stream, err := c.index.StreamStats(t.Context(), connect.NewRequest(&kvscoutv1.StreamStatsRequest{}))
		if err != nil || !stream.Receive() {
			t.Fatalf("a stream: %v", err)
		}
		defer stream.Close()
	}
	_, err := c.index.GetStats(t.Context(), connect.NewRequest(&kvscoutv1.GetStatsRequest{}))
	if got := reason(t, err); got != "OVERLOADED" {
		t.Errorf("a third: %q", got)
	}
	if got := c.scores(); got != "" {
		t.Errorf("a router: %q", got)
	}
}

// While calls wait too long for their turn those that would wait too are refused before their body. Reports and streams, of which
// each request waits by itself, and all that is no router's are let in.
func TestLimit_Crowded(t *testing.T) {
	var crowded atomic.Bool
	r := start(t, access.Options{Crowded: crowded.Load})
	crowded.Store(true)
	for _, procedure := range access.Procedures() {
		a, refused := r.guard.Admit(access.Call{Procedure: procedure})
		want := slices.Contains([]string{"/kvscout.v1.ScoreService/Score", "/kvscout.v1.ScoreService/ScoreBatch", "/kvscout.v1.RenderService/Render"}, procedure)
		if (refused != nil) != want {
			t.Errorf("%s: %v", procedure, refused)
		}
		a.End()
	}
	if a := answered(t, begin(t, r, "", 8<<20)); a.status != http.StatusTooManyRequests || a.reason() != "OVERLOADED" || a.header.Get("Retry-After") != "1" {
		t.Errorf("a call whose body does not come: %+v", a)
	}
	for name, opts := range protocols {
		if got := r.calls(client(t, nil, true), "", opts...).scores(); got != "OVERLOADED" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := r.guard.Stats().GetRefused()["OVERLOADED"]; got != 8 {
		t.Errorf("%d were counted", got)
	}
	crowded.Store(false)
	if got := r.calls(client(t, nil, false), "").scores(); got != "" {
		t.Errorf("with room again: %q", got)
	}
}

// One caller at its bound leaves room for others.
func TestLimit_CallsPerCaller(t *testing.T) {
	r := start(t, access.Options{Callers: write(t, "", twoCallers), Limits: access.Limits{CallsPerCaller: 1}})
	begin(t, r, scoreToken, 10)
	under(t, r, 1)
	if got := r.calls(client(t, nil, false), scoreToken).scores(); got != "OVERLOADED" {
		t.Errorf("the same caller: %q", got)
	}
	if got := r.calls(client(t, nil, false), operateToken).scores(); got != "" {
		t.Errorf("another caller: %q", got)
	}
	under(t, r, 1)
	if got := r.guard.Stats().GetCallers(); got != 2 {
		t.Errorf("%d callers are remembered", got)
	}
}

// A rate is each caller's own; over it a call is refused with when the next may come.
func TestLimit_Rate(t *testing.T) {
	r := start(t, access.Options{Callers: write(t, "", twoCallers), Limits: access.Limits{Rate: 0.001}})
	c := r.calls(client(t, nil, false), scoreToken)
	if got := c.scores(); got != "" {
		t.Errorf("the first: %q", got)
	}
	_, err := c.score.Score(t.Context(), connect.NewRequest(&kvscoutv1.ScoreRequest{}))
	wait := detail[*errdetails.RetryInfo](err).GetRetryDelay().AsDuration()
	if reason(t, err) != "RATE_LIMITED" || wait < 900*time.Second || wait > 1000*time.Second {
		t.Errorf("the second: %v, wait %v", err, wait)
	}
	under(t, r, 0)
	// The other has had one, by which its worker was registered.
	if got := r.calls(client(t, nil, false), operateToken).scores(); got != "RATE_LIMITED" {
		t.Errorf("the other: %q", got)
	}
	if got := r.guard.Stats().GetRefused()["RATE_LIMITED"]; got != 2 {
		t.Errorf("%d were counted", got)
	}
}

// A stream is no way around the rate: its messages wait for it.
func TestLimit_RateOfAStream(t *testing.T) {
	r := start(t, access.Options{Limits: access.Limits{Rate: 40}})
	began := time.Now()
	stream := r.calls(client(t, nil, true), "").score.ScoreStream(t.Context())
	const n = 50 // one registered the worker, so 11 wait 1/40 s each
	for range n {
		err := stream.Send(&kvscoutv1.ScoreStreamRequest{Request: &kvscoutv1.ScoreRequest{Model: "m", Tokens: &kvscoutv1.Tokens{Ids: []int64{1}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.CloseRequest(); err != nil {
		t.Fatal(err)
	}
	got := 0
	for ; ; got++ {
		if _, err := stream.Receive(); err != nil {
			break
		}
	}
	_ = stream.CloseResponse()
	if took := time.Since(began); got != n || took < 200*time.Millisecond {
		t.Errorf("%d answers in %v", got, took)
	}
}

// Invariant 5: callers from everywhere are not remembered for ever.
func TestLimit_CallersAreBounded(t *testing.T) {
	g, err := access.New(access.Options{Limits: access.Limits{CallsPerCaller: 10}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * access.MaxRemembered {
		a, refused := g.Admit(access.Call{Procedure: "/kvscout.v1.ScoreService/Score", Remote: fmt.Sprintf("10.%d.%d.1:5", i/256, i%256)})
		if refused != nil {
			t.Fatal(refused)
		}
		a.End()
	}
	if got := g.Stats(); got.GetCallers() != access.MaxRemembered || got.GetCalls() != 0 {
		t.Errorf("%v", got)
	}
}

// A host of IPv6 has as many addresses as it likes: they are one caller. Ports are of one caller, too.
func TestLimit_AddressesOfOneHost(t *testing.T) {
	g, err := access.New(access.Options{Limits: access.Limits{CallsPerCaller: 1}})
	if err != nil {
		t.Fatal(err)
	}
	admit := func(remote string) string {
		_, err := g.Admit(access.Call{Procedure: "/kvscout.v1.ScoreService/Score", Remote: remote})
		if err != nil {
			return err.Reason.String()
		}
		return ""
	}
	for _, try := range []struct{ remote, want string }{
		{"[2001:db8::1]:5", ""}, {"[2001:db8::ffff:1%eth0]:6", "OVERLOADED"}, {"[2001:db8:0:1::1]:5", ""},
		{"10.0.0.1:5", ""}, {"[::ffff:10.0.0.1]:6", "OVERLOADED"}, {"10.0.0.2:5", ""}, {"@", ""}, {"", "OVERLOADED"},
	} {
		if got := admit(try.remote); got != try.want {
			t.Errorf("%s: %q, want %q", try.remote, got, try.want)
		}
	}
}

// Connections over the bound are closed at once, and counted; each that ends leaves room.
func TestLimit_Connections(t *testing.T) {
	r := start(t, access.Options{Limits: access.Limits{Connections: 3}})
	open := func() net.Conn {
		conn, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	have := func(n uint64) {
		eventually(t, "connections", func() bool { return r.guard.Stats().GetConnections() == n })
	}
	have(1) // by which the worker was registered
	held := []net.Conn{open(), open()}
	have(3)
	over := open()
	_ = over.SetReadDeadline(time.Now().Add(20 * time.Second))
	if n, err := over.Read(make([]byte, 1)); n != 0 || strings.Contains(fmt.Sprint(err), "timeout") {
		t.Errorf("the fourth: %d, %v", n, err)
	}
	have(3)
	if got := r.guard.Stats().GetRefusedConnections(); got != 1 {
		t.Errorf("%d were counted", got)
	}
	_ = held[0].Close()
	have(2)
	if got := r.calls(client(t, nil, true), "").scores(); got != "" {
		t.Errorf("with room again: %s", got)
	}
}

// Pages of the origins that are named may call, those of others may not, and browsers need no token to ask.
func TestCrossOrigin(t *testing.T) {
	const origin = "https://ops.example.com"
	r := start(t, access.Options{Callers: write(t, "", twoCallers)}, origin)
	closed := start(t, access.Options{})
	ask := func(r *rig, from string) http.Header {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodOptions, r.url+"/kvscout.v1.ScoreService/Score", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", from)
		req.Header.Set("Access-Control-Request-Method", "POST")
		req.Header.Set("Access-Control-Request-Headers", "authorization,content-type,x-grpc-web")
		resp, err := client(t, nil, false).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return read(t, resp).header
	}
	if h := ask(r, origin); h.Get("Access-Control-Allow-Origin") != origin || !strings.Contains(h.Get("Access-Control-Allow-Headers"), "authorization") {
		t.Errorf("the origin that is named: %v", h)
	}
	for name, h := range map[string]http.Header{"another": ask(r, "https://evil.example"), "none is named": ask(closed, origin)} {
		if h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", name, h)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/kvscout.v1.ScoreService/Score", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", origin)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client(t, nil, false).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	// A refusal can be read, so that a page can say what is wrong.
	if a := read(t, resp); a.status != http.StatusUnauthorized || a.header.Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("without a token: %+v", a)
	}
}
