package client_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/scorer/client"
)

// methods walks every method of every service.
func methods() iter.Seq[protoreflect.MethodDescriptor] {
	return func(yield func(protoreflect.MethodDescriptor) bool) {
		for _, file := range []protoreflect.FileDescriptor{
			kvscoutv1.File_kvscout_v1_score_proto, kvscoutv1.File_kvscout_v1_index_proto, kvscoutv1.File_kvscout_v1_render_proto,
		} {
			for i := range file.Services().Len() {
				for j := range file.Services().Get(i).Methods().Len() {
					if !yield(file.Services().Get(i).Methods().Get(j)) {
						return
					}
				}
			}
		}
	}
}

// refuse answers with a typed error in whatever protocol the caller speaks.
func refuse(w http.ResponseWriter, r *http.Request, code connect.Code, reason string, after time.Duration) {
	err := connect.NewError(code, errors.New("refused"))
	details := []connect.ErrorDetail{}
	if d, fault := connect.NewErrorDetail(&errdetails.ErrorInfo{Reason: reason, Domain: "kvscout"}); fault == nil {
		details = append(details, *d)
	}
	if d, fault := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)}); fault == nil && after > 0 {
		details = append(details, *d)
	}
	for i := range details {
		err.AddDetail(&details[i])
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_ = connect.NewErrorWriter().Write(w, r, err)
}

// always refuses every call.
func always(code connect.Code, reason string, after time.Duration) *counted {
	return &counted{before: func(_ int64, w http.ResponseWriter, r *http.Request) bool {
		refuse(w, r, code, reason, after)
		return true
	}}
}

// invoke calls a unary method of the client by name with an empty request.
func invoke(ctx context.Context, c *client.Client, name string) error {
	m := reflect.ValueOf(c).MethodByName(name)
	out := m.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.New(m.Type().In(1).Elem())})
	err, _ := out[1].Interface().(error)
	return err
}

// A method is tried again after UNAVAILABLE if and only if its descriptor says that it has no side effects.
func TestRetry_OnlyWithoutSideEffects(t *testing.T) {
	for m := range methods() {
		if m.IsStreamingClient() || m.IsStreamingServer() {
			continue
		}
		t.Run(string(m.Name()), func(t *testing.T) {
			t.Parallel()
			h := always(connect.CodeUnavailable, "NOT_READY", 0)
			url, _ := serve(t, h)
			want := int64(1)
			if m.Options().(*descriptorpb.MethodOptions).GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS {
				want = 3
			}
			err := invoke(t.Context(), dial(t, client.Options{Retries: 2, Timeout: patience}, url), string(m.Name()))
			if client.Reason(err) != "NOT_READY" || h.calls.Load() != want {
				t.Errorf("%d tries, want %d: %v", h.calls.Load(), want, err)
			}
		})
	}
}

// What is wrong with a request is wrong each time; a stream is never begun again.
func TestRetry_NotOfRefusals(t *testing.T) {
	for code, tt := range map[connect.Code]struct {
		reason string
		after  time.Duration
	}{
		connect.CodeInvalidArgument:    {"NO_PROMPT", 0},
		connect.CodeFailedPrecondition: {"NO_RENDERER", 0},
		connect.CodeNotFound:           {"UNKNOWN_MODEL", 0},
		connect.CodeResourceExhausted:  {"PROMPT_TOO_LONG", 0}, // no RetryInfo
		connect.CodeDeadlineExceeded:   {"DEADLINE_EXCEEDED", 0},
		connect.CodeInternal:           {"INTERNAL", time.Millisecond},
		connect.CodePermissionDenied:   {"", 0},
	} {
		h := always(code, tt.reason, tt.after)
		url, _ := serve(t, h)
		if _, err := dial(t, client.Options{}, url).Score(t.Context(), scoreRequest()); connect.CodeOf(err) != code || h.calls.Load() != 1 {
			t.Errorf("%v: %d tries, %v", code, h.calls.Load(), err)
		}
	}
	h := always(connect.CodeUnavailable, "NOT_READY", 0)
	url, _ := serve(t, h)
	stream, err := dial(t, client.Options{}, url).Dump(t.Context(), new(kvscoutv1.DumpRequest))
	if err == nil {
		stream.Receive()
		err = errors.Join(stream.Err(), stream.Close())
	}
	if connect.CodeOf(err) != connect.CodeUnavailable || h.calls.Load() != 1 {
		t.Errorf("a stream: %d tries, %v", h.calls.Load(), err)
	}
}

// A server with too much to do says when to come back: not before, and not at all if the deadline is earlier.
func TestRetry_HonoursRetryInfo(t *testing.T) {
	const after = 150 * time.Millisecond
	var first, second atomic.Int64
	h := &counted{next: handler(t), before: func(n int64, w http.ResponseWriter, r *http.Request) bool {
		if n > 1 {
			second.Store(time.Now().UnixNano())
			return false
		}
		first.Store(time.Now().UnixNano())
		refuse(w, r, connect.CodeResourceExhausted, "OVERLOADED", after)
		return true
	}}
	url, _ := serve(t, h)
	scored(t, t.Context(), dial(t, client.Options{Timeout: patience}, url))
	if gone := time.Duration(second.Load() - first.Load()); h.calls.Load() != 2 || gone < after {
		t.Errorf("%d tries, the second after %v", h.calls.Load(), gone)
	}

	h = always(connect.CodeResourceExhausted, "OVERLOADED", 2*patience)
	url, _ = serve(t, h)
	_, err := dial(t, client.Options{Timeout: patience}, url).Score(t.Context(), scoreRequest())
	if wait, ok := client.RetryAfter(err); client.Reason(err) != "OVERLOADED" || !ok || wait != 2*patience || h.calls.Load() != 1 {
		t.Errorf("%d tries, asked to wait %v: %v", h.calls.Load(), wait, err)
	}
}

// A connection that breaks when the request was read, or within the answer: what changes nothing is asked again, what may
// have been done is not. It is UNAVAILABLE, since nobody canceled it.
func TestRetry_BrokenConnection(t *testing.T) {
	breaks := map[string]func(http.ResponseWriter, *http.Request){
		"before the answer": func(http.ResponseWriter, *http.Request) {},
		"within the answer": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte{0, 0, 0, 0, 95, 1}) // the head of a gRPC message, or a part of a plain one
			_ = http.NewResponseController(w).Flush()
		},
	}
	for _, protocol := range []client.Protocol{client.Connect, client.GRPC, client.GRPCWeb} {
		for name, part := range breaks {
			t.Run(string(protocol)+" "+name, func(t *testing.T) {
				h := &counted{before: func(n int64, w http.ResponseWriter, r *http.Request) bool {
					_, _ = io.Copy(io.Discard, r.Body)
					if n > 1 {
						refuse(w, r, connect.CodeInternal, "second", 0)
						return true
					}
					part(w, r)
					cut(r)
					return true
				}}
				url, _ := serve(t, h)
				c := dial(t, client.Options{Protocol: protocol, Timeout: patience}, url)
				_, err := c.Publish(t.Context(), &kvscoutv1.PublishRequest{WorkerId: "w0"})
				if connect.CodeOf(err) != connect.CodeUnavailable || h.calls.Load() != 1 {
					t.Errorf("Publish was sent %d times: %v", h.calls.Load(), err)
				}
				h.calls.Store(0)
				_, err = c.Score(t.Context(), scoreRequest())
				if client.Reason(err) != "second" || h.calls.Load() != 2 {
					t.Errorf("Score was sent %d times: %v", h.calls.Load(), err)
				}
			})
		}
	}
}

// The tries of all calls together are bounded: a server in trouble does not get a multiple of its load.
func TestRetry_Budget(t *testing.T) {
	const calls, burst = 400, 100
	h := always(connect.CodeUnavailable, "NOT_READY", 0)
	url, _ := serve(t, h)
	c := dial(t, client.Options{Timeout: patience, Retries: 3}, url)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() { // ends with its share, waited for below
			for range calls / 40 {
				if _, err := c.Score(t.Context(), scoreRequest()); client.Reason(err) != "NOT_READY" {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := h.calls.Load(); n != calls+burst {
		t.Errorf("%d calls became %d tries, want %d", calls, n, calls+burst)
	}
}

// A call without a deadline has one; a call with one keeps it; an ended context is not tried again.
func TestDeadline(t *testing.T) {
	h := &counted{before: func(_ int64, _ http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		return true
	}}
	url, _ := serve(t, h)
	c := dial(t, client.Options{Timeout: 50 * time.Millisecond}, url)
	if _, err := c.Score(context.Background(), scoreRequest()); connect.CodeOf(err) != connect.CodeDeadlineExceeded {
		t.Errorf("got %v", err)
	}
	slow := dial(t, client.Options{Timeout: time.Hour}, url)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := slow.Score(ctx, scoreRequest()); connect.CodeOf(err) != connect.CodeDeadlineExceeded {
		t.Errorf("got %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := slow.Score(ctx, scoreRequest()); connect.CodeOf(err) != connect.CodeCanceled {
		t.Errorf("got %v", err)
	}
	if n := h.calls.Load(); n != 3 {
		t.Errorf("%d tries", n)
	}
}

// Eight callers in the middle of a kill: every score is answered once the server is back on its port.
func TestKilledAndRestarted(t *testing.T) {
	h := handler(t)
	url, kill := serve(t, h)
	c := dial(t, client.Options{Timeout: 2 * patience, Retries: 1000}, url)
	var wg sync.WaitGroup
	var answered atomic.Int64
	stop := make(chan struct{})
	for range 8 {
		wg.Go(func() { // ended by stop, waited for below
			for {
				select {
				case <-stop:
					return
				default:
					scored(t, context.Background(), c)
					answered.Add(1)
				}
			}
		})
	}
	for range 3 {
		n := answered.Load()
		until(t, func() bool { return answered.Load() > n+20 })
		kill()
		_, kill = listen(t, "tcp", strings.TrimPrefix(url, "http://"), h)
	}
	n := answered.Load()
	until(t, func() bool { return answered.Load() > n+20 })
	close(stop)
	wg.Wait()
}

// report is a call that changes something.
func report(t *testing.T, c *client.Client) {
	t.Helper()
	_, err := c.ReportRouted(t.Context(), &kvscoutv1.ReportRoutedRequest{
		WorkerId: "w0", Prompt: &kvscoutv1.PromptTarget{Tokens: client.Tokens(prompt(96))},
	})
	if err != nil {
		t.Error(err)
	}
}

// Calls stay at one replica until it is gone, and then at the other.
func TestTwoReplicas(t *testing.T) {
	a, b := &counted{next: handler(t)}, &counted{next: handler(t)}
	urlA, killA := serve(t, a)
	urlB, killB := serve(t, b)
	c := dial(t, client.Options{Timeout: patience, Retries: 2}, urlA, urlB)
	both := func(wantA, wantB int64) {
		t.Helper()
		scored(t, t.Context(), c)
		report(t, c)
		if a.calls.Load() != wantA || b.calls.Load() != wantB {
			t.Fatalf("%d calls to the first, %d to the second, want %d and %d", a.calls.Load(), b.calls.Load(), wantA, wantB)
		}
	}
	both(2, 0)
	killA()
	both(2, 2)
	listen(t, "tcp", strings.TrimPrefix(urlA, "http://"), a)
	both(2, 4)
	killB()
	both(4, 4)
}

// Where no connection can be made nothing was sent: what changes something goes on to the other replica too.
func TestTwoReplicas_NothingWasSent(t *testing.T) {
	gone, kill := serve(t, http.NotFoundHandler())
	kill()
	b := &counted{next: handler(t)}
	url, _ := serve(t, b)
	for _, protocol := range []client.Protocol{client.Connect, client.GRPC, client.GRPCWeb} {
		report(t, dial(t, client.Options{Protocol: protocol, Timeout: patience}, gone, url))
		report(t, dial(t, client.Options{Protocol: protocol, Timeout: patience}, "unix:///nonexistent/socket", url))
	}
	if b.calls.Load() != 6 {
		t.Errorf("%d calls", b.calls.Load())
	}
}

// A replica that says it is not ready is left for the other.
func TestTwoReplicas_OneNotReady(t *testing.T) {
	starting, ready := always(connect.CodeUnavailable, "NOT_READY", 0), &counted{next: handler(t)}
	urlA, _ := serve(t, starting)
	urlB, _ := serve(t, ready)
	c := dial(t, client.Options{Timeout: patience}, urlA, urlB)
	for range 3 {
		scored(t, t.Context(), c)
	}
	if starting.calls.Load() != 1 || ready.calls.Load() != 3 {
		t.Errorf("%d and %d calls", starting.calls.Load(), ready.calls.Load())
	}
}

// With every replica down the error is that of the connection, after bounded tries.
func TestTwoReplicas_BothDown(t *testing.T) {
	var urls []string
	for range 2 {
		url, kill := serve(t, http.NotFoundHandler())
		kill()
		urls = append(urls, url)
	}
	_, err := dial(t, client.Options{Timeout: patience}, urls...).ReportRouted(t.Context(), new(kvscoutv1.ReportRoutedRequest))
	var op *net.OpError
	if connect.CodeOf(err) != connect.CodeUnavailable || !errors.As(err, &op) {
		t.Errorf("got %v", err)
	}
}
