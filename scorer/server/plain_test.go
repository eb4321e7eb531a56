package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/server"
)

// toNetHTTP is a header that means nothing to a server and is not plain.
const toNetHTTP = "Te: trailers"

// exchanged is all that a client of HTTP/1.1 learns of a call that does not differ from one to the next.
type exchanged struct {
	Status  string
	Header  http.Header
	Length  bool // the answer says it
	Body    string
	Counted string
	Kept    bool // another call on the connection was answered
}

// exchange makes a call by one connection, and another one after it.
func exchange(t *testing.T, c net.Conn, method, kind string, body []byte, header ...string) exchanged {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	ask := func(method string, body []byte) (*http.Response, string, error) {
		head := []string{"POST " + method + " HTTP/1.1", "Host: x", "Content-Type: " + kind, "Content-Length: " + strconv.Itoa(len(body))}
		text := strings.Join(append(head, header...), "\r\n") + "\r\n\r\n" + string(body)
		if _, err := io.WriteString(c, text); err != nil {
			return nil, "", err
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return nil, "", err
		}
		defer func() { _ = resp.Body.Close() }()
		got, err := io.ReadAll(resp.Body)
		return resp, string(got), err
	}
	resp, got, err := ask(method, body)
	if err != nil {
		t.Fatal(err)
	}
	out := exchanged{Status: resp.Status, Header: resp.Header, Length: resp.ContentLength == int64(len(got)), Body: got}
	for _, own := range []string{"Date", "Content-Length", "Retry-After"} { // they differ
		out.Header.Del(own)
	}
	_, _, err = ask(method, body)
	out.Kept = err == nil
	return out
}

// ratings are what an answer says but for times.
func ratings(t *testing.T, method, kind, body string) string {
	t.Helper()
	var m proto.Message = new(kvscoutv1.ScoreResponse)
	if method == batchPath {
		m = new(kvscoutv1.ScoreBatchResponse)
	}
	if kind == "application/json" {
		if err := protojson.Unmarshal([]byte(body), m); err != nil {
			t.Fatal(err)
		}
		body = string(encoded(t, m))
	}
	return held(t, raw(body), m)
}

// Plain calls by HTTP/1.1 are answered as net/http would have them answered.
func TestTransport_PlainIsAsByNetHTTP(t *testing.T) {
	guard, token, limited := guards(t)
	guarded := func(o *server.Options) { o.Guard = guard }
	open := func(*server.Options) {}
	const asProto, asJSON = "application/proto", "application/json"
	small, unknown := encoded(t, smallScore), encoded(t, &kvscoutv1.ScoreRequest{Model: "x", Tokens: smallScore.GetTokens()})
	batch := &kvscoutv1.ScoreBatchRequest{Requests: []*kvscoutv1.ScoreRequest{smallScore, {Id: "second", Model: "x"}}}
	inJSON := func(m proto.Message) []byte {
		text, err := protojson.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	large := func(o *server.Options) { o.Score = sized{} }
	thousands := encoded(t, &kvscoutv1.ScoreRequest{Candidates: make([]string, 100)})
	for name, c := range map[string]struct {
		edit         func(*server.Options)
		method, kind string
		body         []byte
		header       []string
		status       int
	}{
		"answered":               {open, scorePath, asProto, small, nil, 200},
		"answered in JSON":       {open, scorePath, asJSON, inJSON(smallScore), []string{"Accept-Encoding: gzip"}, 200},
		"a batch":                {open, batchPath, asProto, encoded(t, batch), nil, 200},
		"a batch in JSON":        {open, batchPath, asJSON, inJSON(batch), []string{"Connect-Timeout-Ms: 9000"}, 200},
		"answered to a token":    {guarded, scorePath, asProto, small, []string{"authorization: Bearer " + token}, 200},
		"no token":               {guarded, scorePath, asProto, small, nil, 401},
		"a wrong token":          {guarded, batchPath, asJSON, inJSON(batch), []string{"Authorization: Bearer x"}, 401},
		"over its rate":          {func(o *server.Options) { o.Guard = limited }, scorePath, asProto, small, nil, 429},
		"a reason":               {open, scorePath, asProto, unknown, nil, 404},
		"a reason in JSON":       {open, scorePath, asJSON, []byte(`{"tokens":{"packed":"AQID"}}`), nil, 400},
		"an error without code":  {scoring(func(context.Context) error { return errors.New("of no code") }), scorePath, asProto, small, nil, 500},
		"an error of a deadline": {scoring(func(context.Context) error { return context.DeadlineExceeded }), scorePath, asProto, small, nil, 504},
		"too late": {scoring(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }), scorePath, asProto, small,
			[]string{"Connect-Timeout-Ms: 20"}, 504},
		"a panic":              {scoring(func(context.Context) error { panic("x") }), scorePath, asProto, small, nil, 500},
		"an empty message":     {open, scorePath, asProto, nil, nil, 400},
		"an empty JSON":        {open, scorePath, asJSON, nil, nil, 400},
		"broken":               {open, scorePath, asProto, raw{0x0a, 200}, nil, 400},
		"broken JSON":          {open, scorePath, asJSON, []byte(`{"tokens":`), nil, 400},
		"a broken batch":       {open, batchPath, asProto, raw{0x0a, 200}, nil, 400},
		"an empty batch":       {open, batchPath, asProto, nil, nil, 400},
		"too large":            {func(o *server.Options) { o.ReadMaxBytes = 100 }, scorePath, asProto, small, nil, 429},
		"a large answer":       {large, scorePath, asProto, thousands, nil, 200},
		"another method":       {open, kvscoutv1connect.IndexServiceListWorkersProcedure, asJSON, []byte("{}"), nil, 200},
		"another's reason":     {open, kvscoutv1connect.IndexServiceInspectProcedure, asJSON, []byte(`{"workerId":"x"}`), nil, 400},
		"another, no body":     {open, kvscoutv1connect.ScoreServiceReportOutcomeProcedure, asProto, nil, []string{"Accept-Encoding: gzip"}, 400},
		"another, to a token":  {guarded, kvscoutv1connect.IndexServiceListWorkersProcedure, asProto, nil, []string{"Authorization: Bearer " + token}, 200},
		"a role is missing":    {guarded, kvscoutv1connect.IndexServiceClearProcedure, asProto, nil, []string{"Authorization: Bearer " + token}, 403},
		"a service not there":  {open, kvscoutv1connect.RenderServiceRenderProcedure, asProto, nil, nil, 404},
		"health":               {open, healthv1.Health_Check_FullMethodName, asJSON, []byte("{}"), nil, 200},
		"a large answer, gzip": {large, scorePath, asProto, thousands, []string{"Accept-Encoding: br, gzip"}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			var got ended
			r := start(t, c.edit, func(o *server.Options) { o.Observe = got.add })
			by := func(more ...string) exchanged {
				conn, err := net.Dial("tcp", r.addr)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				out := exchange(t, conn, c.method, c.kind, c.body, slices.Concat(c.header, more, []string{"X-Request-Id: id-7"})...)
				out.Counted = got.code(t, c.method[1:])
				return out
			}
			plain, netHTTP := by(), by(toNetHTTP)
			if !strings.HasPrefix(plain.Status, strconv.Itoa(c.status)) || !plain.Length {
				t.Errorf("status %s, want %d", plain.Status, c.status)
			}
			if c.status == http.StatusOK && (c.method == scorePath || c.method == batchPath) && !strings.HasPrefix(name, "a large") {
				if a, b := ratings(t, c.method, c.kind, plain.Body), ratings(t, c.method, c.kind, netHTTP.Body); a != b {
					t.Errorf("answers\n%s, by net/http\n%s", a, b)
				}
				plain.Body, netHTTP.Body = "", ""
			}
			for _, e := range []*exchanged{&plain, &netHTTP} {
				if c.method == kvscoutv1connect.IndexServiceListWorkersProcedure && c.status == http.StatusOK {
					e.Body = e.Body[:min(len(e.Body), 25)] // before its ages
				}
				e.Body, _, _ = strings.Cut(e.Body, "google.rpc.RetryInfo") // with a time
				e.Body = strings.ReplaceAll(e.Body, "\u00a0", " ")         // protobuf varies it
			}
			netHTTP.Length = plain.Length // it does not know that of a large one
			if diff := cmp.Diff(netHTTP, plain); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The trace of a caller goes on by a plain call.
func TestTransport_PlainKeepsTrace(t *testing.T) {
	var got ended
	r := start(t, func(o *server.Options) { o.Observe = got.add })
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	exchange(t, conn, scorePath, "application/proto", encoded(t, smallScore), "Traceparent: 00-"+traceID+"-00f067aa0ba902b7-01", "Tracestate: a=1,b=2")
	eventually(t, func() bool {
		got.mu.Lock()
		defer got.mu.Unlock()
		return len(got.list) > 0
	})
	got.mu.Lock()
	defer got.mu.Unlock()
	if sc := got.list[0].Trace; sc.TraceID().String() != traceID || sc.TraceState().String() != "a=1,b=2" {
		t.Errorf("%+v", sc)
	}
}
