package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// sniffTime is how long a connection may take to say what it is, as ReadHeaderTimeout is for requests.
	sniffTime = 5 * time.Second
	// maxSniffed bounds what is read of a connection before it is known what it is: more than fits into the window that
	// HTTP/2 begins with.
	maxSniffed = 128 << 10
	// maxSniffedHeaders bounds the headers of its first request.
	maxSniffedHeaders = 64 << 10
)

// splitter shares the connections of one listener between three servers: those of gRPC clients, by their first request, those that may
// begin with a plain call, and all others. Who reads such a connection misses nothing of it, but for its TLS, which is open.
type splitter struct {
	listener net.Listener
	tls      *tls.Config                      // nil in clear text
	failed   func(remote net.Addr, err error) // is told of connections whose TLS could not be opened
	grpc     *branch
	plain    func(*conn) bool // takes connections that begin as plain calls do
	rest     *branch

	wg sync.WaitGroup // of the goroutines that look at a connection

	mu sync.Mutex // guards what follows
	// open are the connections that are looked at.
	open   map[net.Conn]bool
	closed bool
}

func newSplitter(l net.Listener, conf *tls.Config, failed func(net.Addr, error), plain func(*conn) bool) *splitter {
	return &splitter{
		listener: l, tls: conf, failed: failed, grpc: newBranch(l.Addr()), plain: plain, rest: newBranch(l.Addr()),
		open: make(map[net.Conn]bool),
	}
}

// run accepts connections until the listener fails or is closed, and returns why.
func (s *splitter) run() error {
	var pause time.Duration
	for {
		c, err := s.listener.Accept()
		var passing interface{ Temporary() bool } // such as too many open files, as net/http sees it
		switch {
		case err == nil:
			pause = 0
			s.look(c)
		case errors.As(err, &passing) && passing.Temporary():
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			time.Sleep(pause)
		default:
			s.grpc.fail(err)
			s.rest.fail(err)
			return err
		}
	}
}

// close ends run, and waits for the connections that are looked at, which are closed.
func (s *splitter) close() {
	_ = s.listener.Close() // closed already, if it fails
	s.mu.Lock()
	s.closed = true
	for c := range s.open {
		_ = c.Close() // it has asked nothing yet
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// look hands the connection to the server it is for.
func (s *splitter) look(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = c.Close()
		return
	}
	s.open[c] = true
	s.wg.Go(func() { // ends within twice sniffTime, or by close, which waits for it
		known, isGRPC, err := s.know(c)
		s.mu.Lock()
		delete(s.open, c)
		err = errors.Join(err, c.SetDeadline(time.Time{}))
		s.mu.Unlock()
		if err != nil || !s.hand(known, isGRPC) {
			_ = c.Close() // it has nothing to be told
		}
	})
}

// hand gives a connection to its server. It is false when that accepts none any more.
func (s *splitter) hand(c *conn, isGRPC bool) bool {
	switch {
	case isGRPC:
		return s.grpc.take(c)
	case bytes.HasPrefix(c.head, []byte("POST /")):
		return s.plain(c)
	}
	return s.rest.take(c)
}

// know opens a connection and finds out what it speaks.
func (s *splitter) know(c net.Conn) (known *conn, isGRPC bool, err error) {
	if err := c.SetDeadline(time.Now().Add(sniffTime)); err != nil {
		return nil, false, err
	}
	known, err = open(c, s.tls)
	if err != nil {
		s.mu.Lock()
		closed := s.closed
		s.mu.Unlock()
		if !closed {
			s.failed(c.RemoteAddr(), err)
		}
		return nil, false, err
	}
	known.head, isGRPC, err = sniff(known.Conn, sniffTime)
	return known, isGRPC, err
}

// sniff reads as much of a connection as it takes to tell what it is, but not for longer than within. head is what its
// server is to read first. It errs if the connection breaks, is too slow, or speaks no HTTP/2 after having said so.
func sniff(c net.Conn, within time.Duration) (head []byte, isGRPC bool, err error) {
	if err := c.SetDeadline(time.Now().Add(within)); err != nil {
		return nil, false, err
	}
	in := &recorder{conn: c}
	for len(in.read) < len(http2.ClientPreface) {
		var more [len(http2.ClientPreface)]byte
		if _, err := in.Read(more[:len(more)-len(in.read)]); err != nil {
			return nil, false, err
		}
		if !strings.HasPrefix(http2.ClientPreface, string(in.read)) {
			return in.read, false, nil
		}
	}
	return sniffHTTP2(c, in)
}

// sniffHTTP2 reads on to the headers of the first request. Clients wait for the server's settings before they send any, so
// empty ones go first, and what acknowledges those is taken out: the server that comes did not send them. A client that opens
// a connection ahead of its first request keeps it: net/http, which speaks every protocol, waits for that.
func sniffHTTP2(c io.Writer, in *recorder) (head []byte, isGRPC bool, err error) {
	frames := http2.NewFramer(c, in)
	frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	frames.MaxHeaderListSize = maxSniffedHeaders
	if err := frames.WriteSettings(); err != nil {
		return nil, false, err
	}
	acked, asked := false, false
	for !acked || !asked {
		at := len(in.read)
		f, err := frames.ReadFrame()
		if acked && errors.Is(err, os.ErrDeadlineExceeded) {
			return in.read, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if f.IsAck() && !acked {
				acked = true
				in.read = in.read[:at]
			}
		case *http2.MetaHeadersFrame:
			if !asked {
				asked, isGRPC = true, fromGRPCClient(f)
			}
		}
	}
	return in.read, isGRPC, nil
}

// fromGRPCClient says whether a connection whose first request this is will carry gRPC only: it comes right from a library
// of gRPC. Proxies, and clients that speak several protocols, may send anything after it.
func fromGRPCClient(f *http2.MetaHeadersFrame) bool {
	var kind, agent string
	for _, h := range f.RegularFields() {
		switch h.Name {
		case "content-type":
			kind = h.Value
		case "user-agent":
			agent = h.Value
		case "via", "forwarded", "x-forwarded-for", "x-forwarded-proto", "x-request-id", "x-envoy-expected-rq-timeout-ms":
			return false
		}
	}
	rest, ok := strings.CutPrefix(kind, "application/grpc")
	if !ok || rest != "" && rest[0] != '+' && rest[0] != ';' {
		return false
	}
	return strings.Contains(agent, "grpc-") && !strings.Contains(agent, "grpc-go-connect") || strings.HasPrefix(agent, "tonic/")
}

// recorder keeps what was read of a connection.
type recorder struct {
	conn io.Reader
	read []byte
}

var errSniffed = errors.New("connection begins with too much")

func (r *recorder) Read(p []byte) (int, error) {
	if len(r.read) > maxSniffed {
		return 0, errSniffed
	}
	n, err := r.conn.Read(p)
	r.read = append(r.read, p[:n]...)
	return n, err
}

// branch is a listener that is given its connections.
type branch struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
	err   error // of Accept, once done is closed
}

func newBranch(addr net.Addr) *branch {
	return &branch{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

// take hands over a connection; it is false when nobody accepts any more.
func (b *branch) take(c net.Conn) bool {
	select {
	case b.conns <- c:
		return true
	case <-b.done:
		return false
	}
}

func (b *branch) fail(err error) {
	b.once.Do(func() {
		b.err = err
		close(b.done)
	})
}

// Accept implements net.Listener.
func (b *branch) Accept() (net.Conn, error) {
	select {
	case c := <-b.conns:
		return c, nil
	case <-b.done:
		return nil, b.err
	}
}

// Close implements net.Listener.
func (b *branch) Close() error {
	b.fail(net.ErrClosed)
	return nil
}

// Addr implements net.Listener.
func (b *branch) Addr() net.Addr { return b.addr }
