package client_test

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/kvscout/kvscout/scorer/client"
)

// blackhole is an address that answers no attempt to connect: a listener whose queue is full.
func blackhole(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}
	for range 16 {
		conn, err := net.DialTimeout("tcp", at.String(), 300*time.Millisecond)
		if err != nil {
			return at.String()
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatal("the queue is never full")
	return ""
}

// A replica that does not even refuse is left once a connection was not made in time, though each call has ended by its own
// deadline long before.
func TestTwoReplicas_OneDoesNotAnswer(t *testing.T) {
	url, _ := serve(t, handler(t))
	c := dial(t, client.Options{DialTimeout: 200 * time.Millisecond}, "http://"+blackhole(t), url)
	until(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := c.Score(ctx, scoreRequest())
		return err == nil
	})
}

// A deadline that ends with the try to connect is DEADLINE_EXCEEDED, not UNAVAILABLE, whichever is noticed first.
func TestDeadline_WhileConnecting(t *testing.T) {
	const limit = 10 * time.Millisecond
	c := dial(t, client.Options{Timeout: limit, DialTimeout: limit}, "http://"+blackhole(t))
	for range 30 {
		if _, err := c.Score(t.Context(), scoreRequest()); connect.CodeOf(err) != connect.CodeDeadlineExceeded {
			t.Fatal(err)
		}
	}
}
