//go:build kubernetes

package kubernetes

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy is a TCP proxy that can be cut, and counts connections by the local address that they came to.
type proxy struct {
	to      []string // in turn
	address string   // that it listens on
	wg      sync.WaitGroup

	mu       sync.Mutex          // guards all below
	listener net.Listener        // nil while cut
	conns    map[net.Conn]string // open ones of clients, with the IP address they were made to
	most     map[string]int      // by IP address: the most that were open at once
	turn     int
}

// startProxy listens on address and passes on to others.
func startProxy(t *testing.T, address string, to ...string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{to: to, address: l.Addr().String(), conns: make(map[net.Conn]string), most: make(map[string]int)}
	p.listen(l)
	t.Cleanup(func() {
		p.cut()
		p.wg.Wait()
	})
	return p
}

// listen takes connections from now on.
func (p *proxy) listen(l net.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = l
	p.wg.Go(func() { p.accept(l) }) // ends when the listener closes; waited for in the cleanup
}

func (p *proxy) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(c) }) // ends when either side closes, or the proxy is cut; waited for in the cleanup
	}
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	ip, _, _ := net.SplitHostPort(c.LocalAddr().String())
	p.mu.Lock()
	if p.listener == nil {
		p.mu.Unlock()
		return
	}
	p.conns[c] = ip
	p.most[ip] = max(p.most[ip], p.open(ip))
	to := p.to[p.turn%len(p.to)]
	p.turn++
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, c)
	}()
	up, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer up.Close()
	p.wg.Go(func() { // ends when either side closes
		_, _ = io.Copy(up, c)
		_ = up.Close()
	})
	_, _ = io.Copy(c, up)
}

// open counts the connections to an IP address. Needs p.mu.
func (p *proxy) open(ip string) (n int) {
	for _, to := range p.conns {
		if to == ip {
			n++
		}
	}
	return n
}

// count is how many are open, over all addresses.
func (p *proxy) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// cut ends all connections, and refuses new ones until mend.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		return
	}
	_ = p.listener.Close()
	p.listener = nil
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) mend(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	p.listen(l)
}
