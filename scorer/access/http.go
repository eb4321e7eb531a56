package access

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	connectcors "connectrpc.com/cors"
	"github.com/rs/cors"

	"github.com/kvscout/kvscout/indexer/indexrpc"
)

// Of a refused call over HTTP/1.1 so much of its body is thrown away, in so long a time: clients that write a request whole
// before they read get the answer, and the connection can be kept. It is no less than the largest message by default.
const (
	lingering  = 5 * time.Second
	discardMax = 16 << 20
)

// Handler lets calls pass to next or refuses them in the form of their protocol.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		admitted, err := g.Admit(Call{
			Procedure: r.URL.Path, Authorization: r.Header["Authorization"], TLS: r.TLS, Remote: r.RemoteAddr,
		})
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		defer admitted.End()
		if admitted.who != nil && admitted.who.rate != nil {
			r = r.WithContext(context.WithValue(r.Context(), pacerKey{}, admitted.who))
		}
		next.ServeHTTP(w, r)
	})
}

// refuse answers without the body. It fails only where there is nobody left to be told.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, err *indexrpc.Error) {
	rc := http.NewResponseController(w)
	if r.ProtoMajor == 1 {
		out := &whole{ResponseWriter: w}
		w = out
		// What is left of the body goes here and not after the handler: there net/http would read on beside itself, panic,
		// and end the connection (golang/go#68560).
		defer func() {
			out.send()
			_ = rc.Flush()
			discard(rc, r)
		}()
	}
	_ = rc.EnableFullDuplex() // the answer goes out before the body is there; HTTP/2 does that by itself
	_ = rc.SetReadDeadline(time.Now().Add(lingering))
	_ = rc.SetWriteDeadline(time.Now().Add(lingering))
	if err.Reason.Code() == connect.CodeUnauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if g.writer.IsSupported(r) {
		_ = g.writer.Write(w, r, err.Connect())
		return
	}
	for name, values := range err.Connect().Meta() {
		w.Header()[name] = values
	}
	http.Error(w, err.Error(), statuses[err.Reason.Code()])
}

// discard throws the body of a refused call away. It fails only where the connection ends for it.
func discard(rc *http.ResponseController, r *http.Request) {
	if strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		_ = rc.SetReadDeadline(time.Unix(1, 0)) // who asked whether to send a body has got the answer, and sends none
	} else if r.ContentLength <= discardMax {
		_, _ = io.CopyN(io.Discard, r.Body, discardMax)
	}
	_ = r.Body.Close()
}

// whole keeps an answer until it is sent with its length, so that it ends before the handler does.
type whole struct {
	http.ResponseWriter
	status int // 0: not stated
	body   bytes.Buffer
}

func (w *whole) WriteHeader(status int) { w.status = cmp.Or(w.status, status) }

func (w *whole) Write(p []byte) (int, error) { return w.body.Write(p) }

func (w *whole) send() {
	w.Header().Set("Content-Length", strconv.Itoa(w.body.Len()))
	w.ResponseWriter.WriteHeader(cmp.Or(w.status, http.StatusOK))
	_, _ = w.ResponseWriter.Write(w.body.Bytes()) // fails only where there is nobody left to be told
}

// statuses are those of requests that are of none of the protocols.
var statuses = map[connect.Code]int{
	connect.CodeUnauthenticated:   http.StatusUnauthorized,
	connect.CodePermissionDenied:  http.StatusForbidden,
	connect.CodeResourceExhausted: http.StatusTooManyRequests,
}

// CrossOrigin lets scripts of web pages from these origins call; "*" is any. Their questions whether they may, which carry no
// credential, are answered here. Without origins it is next itself.
func CrossOrigin(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: connectcors.AllowedMethods(),
		AllowedHeaders: append(connectcors.AllowedHeaders(), "Authorization", "X-Request-Id", "Traceparent"),
		ExposedHeaders: append(connectcors.ExposedHeaders(), "Retry-After", "X-Request-Id"),
		MaxAge:         7200, // seconds; browsers take no more
	}).Handler(next)
}

// HandshakeFailed counts a connection whose TLS could not be opened, and tells of it at debug level.
func (g *Guard) HandshakeFailed(remote net.Addr, err error) {
	g.handshakesFailed.Add(1)
	g.log.Debug("TLS handshake failed", "address", remote.String(), "error", err)
}

// ErrorLog is for http.Server: it passes lines on at debug level.
func (g *Guard) ErrorLog() *log.Logger {
	return log.New(serverLog{g}, "", 0)
}

type serverLog struct{ guard *Guard }

func (s serverLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	level := slog.LevelDebug
	if strings.Contains(text, "panic serving") {
		level = slog.LevelError // a fault of ours, never of a caller
	}
	s.guard.log.Log(context.Background(), level, text)
	return len(line), nil
}

// pacerKey is the key of the caller in the context of a call whose rate is limited.
type pacerKey struct{}

// Pace makes the messages of a stream wait for the rate of its caller: a stream is one call, and would be a way around it.
func (g *Guard) Pace() connect.Interceptor { return pace{} }

type pace struct{}

// WrapUnary implements connect.Interceptor; it changes nothing.
func (pace) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }

// WrapStreamingClient implements connect.Interceptor; it changes nothing.
func (pace) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor.
func (pace) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if who, ok := ctx.Value(pacerKey{}).(*caller); ok {
			conn = &pacedConn{StreamingHandlerConn: conn, ctx: ctx, who: who}
		}
		return next(ctx, conn)
	}
}

// pacedConn is a stream whose messages after the first are each a call of its caller.
type pacedConn struct {
	connect.StreamingHandlerConn
	ctx   context.Context // of the call
	who   *caller
	begun bool
}

// Receive implements connect.StreamingHandlerConn.
func (p *pacedConn) Receive(msg any) error {
	if p.begun {
		if err := p.who.rate.Wait(p.ctx); err != nil {
			return indexrpc.Classify(err).Connect()
		}
	}
	p.begun = true
	return p.StreamingHandlerConn.Receive(msg)
}
