package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// ownServer is a `kvscout serve` that a benchmark started beside.
type ownServer struct {
	cmd  *exec.Cmd
	url  string
	rest chan struct{} // closed when its standard output has ended
}

// startServer starts this program as a server on a free port of 127.0.0.1. It logs warnings to errs.
func startServer(ctx context.Context, errs io.Writer) (*ownServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-level", "warn")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second // then it is killed
	cmd.Stderr = errs
	// Ctrl-C is for this process, which stops the other when it has taken the workers away again.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &ownServer{cmd: cmd, rest: make(chan struct{})}
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	go func() { defer close(s.rest); _, _ = io.Copy(io.Discard, r) }() // ends with the process, waited for by stop
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "kvscout serves on ")
	if err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("the server said %q: %w", line, err), s.stop())
	}
	s.url = url
	return s, nil
}

func (s *ownServer) pid() int { return s.cmd.Process.Pid }

// stop ends the server and waits for it.
func (s *ownServer) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
	<-s.rest
	return s.cmd.Wait()
}
