package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
	"github.com/kvscout/kvscout/scorer/bench"
)

// ownServer is kvscout serve, filled.
type ownServer struct {
	cmd    *exec.Cmd
	rest   chan struct{} // closed when its standard output has ended
	target bench.Target
	api    kvscoutv1connect.IndexServiceClient
}

func startOwn(ctx context.Context, program string, w *bench.Workload) (*ownServer, error) {
	cmd := exec.CommandContext(ctx, program, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-level", "warn")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = os.Stderr
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
	url := strings.TrimPrefix(strings.TrimSpace(line), "kvscout serves on ")
	if err != nil || url == line {
		return nil, errors.Join(fmt.Errorf("kvscout said %q: %w", line, err), s.stop())
	}
	s.target = bench.Target{Network: "tcp", Address: strings.TrimPrefix(url, "http://")}
	s.api = kvscoutv1connect.NewIndexServiceClient(http.DefaultClient, url)
	if err := w.Fill(ctx, s.api, nil); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *ownServer) name() string { return "kvscout" }

func (s *ownServer) pid() int { return s.cmd.Process.Pid }

func (s *ownServer) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
	<-s.rest
	return s.cmd.Wait()
}

func (s *ownServer) callers(w *bench.Workload, c cell) ([]bench.Caller, func() error, error) {
	client := bench.Client{Protocol: bench.ProtocolConnect, Callers: c.callers, Connections: c.callers}
	switch c.kind {
	case leanJSON:
		client.Protocol = bench.ProtocolJSON
	case leanHashes:
		client.Form.Hashes = true
	case stock:
		client.Stock = true
	case grpcGo:
		client.Protocol, client.Stock, client.Connections = bench.ProtocolGRPC, true, 1
	}
	return w.Callers(s.target, client)
}

// ingesting calls do while engines publish.
func (s *ownServer) ingesting(ctx context.Context, w *bench.Workload, do func() error) error {
	engines, err := w.NewIngest(ctx, s.api)
	if err != nil {
		return err
	}
	publishing, stop := context.WithCancel(ctx)
	defer stop()
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- engines.Run(publishing, ingestRate, func() { close(ready) }) }() // ended by stop, waited for on done
	<-ready
	began, before := time.Now(), engines.Blocks()
	err = do()
	rate := float64(engines.Blocks()-before) / time.Since(began).Seconds()
	stop()
	err = errors.Join(err, <-done, engines.Remove(context.WithoutCancel(ctx), s.api), engines.Close())
	if err == nil && rate < 0.9*ingestRate {
		fmt.Fprintf(os.Stderr, "wire: only %.0f blocks/s were published\n", rate)
	}
	return err
}
