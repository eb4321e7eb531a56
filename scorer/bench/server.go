package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Server is a `kvscout serve` beside, to be measured.
type Server struct {
	// URL is where it serves, such as "http://127.0.0.1:9470".
	URL  string
	cmd  *exec.Cmd
	rest chan struct{} // closed when its standard output has ended
}

// StartServer starts program, a kvscout, as a server on a free port of 127.0.0.1. It logs warnings to errs, and ends with ctx
// or by Stop, which must be called.
func StartServer(ctx context.Context, program string, errs io.Writer) (*Server, error) {
	cmd := exec.CommandContext(ctx, program, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-level", "warn")
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
	s := &Server{cmd: cmd, rest: make(chan struct{})}
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	go func() { defer close(s.rest); _, _ = io.Copy(io.Discard, r) }() // ends with the process, waited for by Stop
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "kvscout serves on ")
	if err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("the server said %q: %w", line, err), s.Stop())
	}
	s.URL = url
	return s, nil
}

// PID is its process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Stop ends the server and waits for it.
func (s *Server) Stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
	<-s.rest
	return s.cmd.Wait()
}
