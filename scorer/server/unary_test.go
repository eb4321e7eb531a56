package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/access"
	"github.com/kvscout/kvscout/scorer/server"
)

const batchPath = kvscoutv1connect.ScoreServiceScoreBatchProcedure

// raw is a message as it goes over the wire.
type raw []byte

// rawCodec sends and receives raw.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(raw))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*raw) = data.Materialize()
	return nil
}

// outcome is all that a gRPC client learns of a call that does not differ from one call to the next.
type outcome struct {
	Answer          raw
	Code            codes.Code
	Message         string
	Details         []string
	Header, Trailer metadata.MD
	Counted         string // the code by which the server counted it
}

// invoke makes a call with so many messages.
func invoke(ctx context.Context, t testing.TB, conn *grpc.ClientConn, method string, messages ...raw) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		_ = stream.SendMsg(m) // it fails where the answer is there already
	}
	_ = stream.CloseSend()
	var out outcome
	for err == nil {
		var m raw
		if err = stream.RecvMsg(&m); err == nil {
			out.Answer = append(out.Answer, m...)
		}
	}
	if !errors.Is(err, io.EOF) {
		st := status.Convert(err)
		out.Code, out.Message = st.Code(), st.Message()
		for _, d := range st.Details() {
			text := fmt.Sprintf("%T", d) // how long to wait differs
			if info, ok := d.(*errdetails.ErrorInfo); ok {
				text = info.GetDomain() + " " + info.GetReason()
			}
			out.Details = append(out.Details, text)
		}
	}
	out.Header, _ = stream.Header() // none where the call has failed
	out.Trailer = stream.Trailer()
	for _, own := range []string{"content-length", "content-type", "date", "trailer", "grpc-accept-encoding", "grpc-status-details-bin"} { // of HTTP
		delete(out.Header, own)
		delete(out.Trailer, own)
	}
	return out
}

// dialDirect connects to grpc-go's transport, whatever is called after.
func dialDirect(t testing.TB, r *rig) *grpc.ClientConn {
	conn := dial(t, r)
	_, _ = healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{}) // it may be refused
	return conn
}

func encoded(t testing.TB, m proto.Message) raw {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// held is an answer but for the time in it.
func held(t testing.TB, answer raw, m proto.Message) string {
	t.Helper()
	if err := proto.Unmarshal(answer, m); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	one := func(r *kvscoutv1.ScoreResponse) {
		for _, w := range r.GetWorkers() {
			fmt.Fprintln(&b, w.GetWorkerId(), w.GetHeldTokens(), w.GetScore(), w.GetBound())
		}
	}
	switch m := m.(type) {
	case *kvscoutv1.ScoreResponse:
		one(m)
	case *kvscoutv1.ScoreBatchResponse:
		for _, r := range m.GetResults() {
			fmt.Fprintln(&b, r.GetId(), r.GetError())
			one(r.GetResponse())
		}
	}
	return b.String()
}

// guards are one that knows a caller with the role score, by token, and one whose rate is used up.
func guards(t *testing.T) (known *access.Guard, token string, limited *access.Guard) {
	t.Helper()
	callers := filepath.Join(t.TempDir(), "callers")
	token = "token-of-the-gateway-0123456789"
	if err := os.WriteFile(callers, []byte("score gateway token:"+token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := access.New(access.Options{Callers: callers})
	if err != nil {
		t.Fatal(err)
	}
	limited, err = access.New(access.Options{Limits: access.Limits{Rate: 1e-9}})
	if err != nil {
		t.Fatal(err)
	}
	if _, refused := limited.Admit(access.Call{Procedure: scorePath, Remote: "127.0.0.1:1"}); refused != nil {
		t.Fatal(refused) // this takes the one call that there is
	}
	return known, token, limited
}

// The methods that grpc-go's transport answers without the HTTP handlers answer there as they do behind them: a proxy's
// connection is net/http's.
func TestTransport_UnaryIsAsBehindHTTP(t *testing.T) {
	guard, token, limited := guards(t)
	open := func(*server.Options) {}
	small, unknown := encoded(t, smallScore), encoded(t, &kvscoutv1.ScoreRequest{Model: "x", Tokens: smallScore.GetTokens()})
	batch := encoded(t, &kvscoutv1.ScoreBatchRequest{Requests: []*kvscoutv1.ScoreRequest{smallScore, {Id: "second", Model: "x"}}})
	never := errors.New("of no code")
	for name, c := range map[string]struct {
		edit     func(*server.Options)
		method   string
		token    string
		messages []raw
		want     codes.Code
	}{
		"answered":               {open, scorePath, "", []raw{small}, codes.OK},
		"answered to a token":    {func(o *server.Options) { o.Guard = guard }, scorePath, token, []raw{small}, codes.OK},
		"no token":               {func(o *server.Options) { o.Guard = guard }, scorePath, "", []raw{small}, codes.Unauthenticated},
		"a wrong token":          {func(o *server.Options) { o.Guard = guard }, batchPath, "x", []raw{small}, codes.Unauthenticated},
		"over its rate":          {func(o *server.Options) { o.Guard = limited }, scorePath, "", []raw{small}, codes.ResourceExhausted},
		"a reason":               {open, scorePath, "", []raw{unknown}, codes.NotFound},
		"an error without code":  {scoring(func(context.Context) error { return never }), scorePath, "", []raw{small}, codes.Unknown},
		"an error of a deadline": {scoring(func(context.Context) error { return context.DeadlineExceeded }), scorePath, "", []raw{small}, codes.DeadlineExceeded},
		"a panic":                {scoring(func(context.Context) error { panic("x") }), scorePath, "", []raw{small}, codes.Internal},
		"no message":             {open, scorePath, "", nil, codes.Unimplemented},
		"an empty message":       {open, scorePath, "", []raw{{}}, codes.InvalidArgument},
		"two messages":           {open, scorePath, "", []raw{small, small}, codes.Unimplemented},
		"broken":                 {open, scorePath, "", []raw{{0x0a, 200}}, codes.InvalidArgument},
		"a broken batch":         {open, batchPath, "", []raw{{0x0a, 200}}, codes.InvalidArgument},
		"a batch":                {open, batchPath, "", []raw{batch}, codes.OK},
		"an empty batch":         {open, batchPath, "", []raw{{}}, codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			var got ended
			r := start(t, c.edit, func(o *server.Options) { o.Observe = got.add })
			ctx := metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "id-7")
			if c.token != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
			}
			direct := invoke(ctx, t, dialDirect(t, r), c.method, c.messages...)
			direct.Counted = got.code(t, c.method[1:])
			behind := invoke(metadata.AppendToOutgoingContext(ctx, "via", "2 proxy"), t, dial(t, r), c.method, c.messages...)
			behind.Counted = got.code(t, c.method[1:])
			if direct.Code != c.want {
				t.Errorf("%v, want %v", direct.Code, c.want)
			}
			if answers := direct.Answer; c.want == codes.OK {
				var m, same proto.Message = new(kvscoutv1.ScoreResponse), new(kvscoutv1.ScoreResponse)
				if c.method == batchPath {
					m, same = new(kvscoutv1.ScoreBatchResponse), new(kvscoutv1.ScoreBatchResponse)
				}
				if a, b := held(t, answers, m), held(t, behind.Answer, same); a != b || !strings.Contains(a, "w0 64 1") {
					t.Errorf("answers\n%s, behind HTTP\n%s", a, b)
				}
				direct.Answer, behind.Answer = nil, nil
			}
			if diff := cmp.Diff(behind, direct); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The trace of a caller goes on over grpc-go's transport.
func TestTransport_UnaryKeepsTrace(t *testing.T) {
	var got ended
	r := start(t, func(o *server.Options) { o.Observe = got.add })
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-"+traceID+"-00f067aa0ba902b7-01", "tracestate", "a=1,b=2")
	if out := invoke(ctx, t, dialDirect(t, r), scorePath, encoded(t, smallScore)); out.Code != codes.OK {
		t.Fatal(out)
	}
	eventually(t, func() bool {
		got.mu.Lock()
		defer got.mu.Unlock()
		return len(got.list) == 2
	})
	if sc := got.list[1].Trace; sc.TraceID().String() != traceID || sc.TraceState().String() != "a=1,b=2" {
		t.Errorf("%+v", sc)
	}
}
