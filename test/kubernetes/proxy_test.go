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
	to       []string // in turn
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex // guards all below
	cut   bool
	conns map[net.Conn]string // open ones of clients, with the IP address they were made to
	most  map[string]int      // by IP address: the most that were open at once
	turn  int
}

// startProxy listens on address and passes on to others.
func startProxy(t *testing.T, address string, to ...string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{to: to, listener: l, conns: make(map[net.Conn]string), most: make(map[string]int)}
	p.wg.Go(p.accept) // ends when the listener closes; waited for below
	t.Cleanup(func() {
		_ = l.Close()
		p.setCut(true)
		p.wg.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
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
	if p.cut {
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

// setCut ends all connections, and refuses or takes new ones.
func (p *proxy) setCut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	if cut {
		for c := range p.conns {
			_ = c.Close()
		}
	}
}
