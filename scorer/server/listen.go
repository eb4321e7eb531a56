package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// ErrAddress is an address that cannot be listened on: malformed, in use, or a file that is no socket.
var ErrAddress = errors.New("bad listen address")

const unixScheme = "unix://"

// Listen listens on "host:port" or "unix:///path". A socket that a dead process left behind is removed; one that
// somebody answers on, or a file that is no socket, is not. It errs with ErrAddress.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	network, address := "tcp", addr
	if path, ok := strings.CutPrefix(addr, unixScheme); ok {
		if !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("%w: %q has no absolute path", ErrAddress, addr)
		}
		if err := removeStale(ctx, path); err != nil {
			return nil, err
		}
		network, address = "unix", path
	} else if strings.Contains(addr, "://") {
		return nil, fmt.Errorf("%w: %q is neither host:port nor unix:///path", ErrAddress, addr)
	}
	l, err := new(net.ListenConfig).Listen(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAddress, err)
	}
	return l, nil
}

// removeStale removes a socket on which nobody answers.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrAddress, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%w: %s exists and is no socket", ErrAddress, path)
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close() // it has told what it was for
		return fmt.Errorf("%w: %s is in use", ErrAddress, path)
	}
	if !refused(err) {
		return fmt.Errorf("%w: %s may be in use: %w", ErrAddress, path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrAddress, err)
	}
	return nil
}

// refused says whether a dial met a socket without a listener.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
