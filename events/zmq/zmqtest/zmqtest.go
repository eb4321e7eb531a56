package zmqtest

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/kvscout/kvscout/test/testpython"
)

//go:embed publisher.py
var script string

// Args are the fields of a command; see publisher.py.
type Args map[string]any

// Answer is what the publisher says to any command; which fields are set depends on it.
type Answer struct {
	// Pub and Replay are endpoints ("open").
	Pub, Replay string
	// Seq is the next sequence number ("publish").
	Seq uint64
	// Asked lists the start numbers of replay requests so far, Subs the subscribers ("state").
	Asked []uint64
	Subs  int
	Error string
}

// Publisher is a publisher process.
type Publisher struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// Start runs a publisher, which ends with the test.
func Start(t testing.TB) *Publisher {
	t.Helper()
	cmd := exec.Command(testpython.Path(t), "-u", "-c", script)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Publisher{t: t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
	t.Cleanup(p.Kill)
	return p
}

// Do sends one command and returns its answer; an error of the publisher fails the test.
func (p *Publisher) Do(op string, args Args) Answer {
	p.t.Helper()
	command := Args{"op": op}
	for k, v := range args {
		command[k] = v
	}
	b, err := json.Marshal(command)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		p.t.Fatalf("publisher: %v", err)
	}
	if !p.out.Scan() {
		p.t.Fatalf("publisher ended at %s: %v", b, p.out.Err())
	}
	var a Answer
	if err := json.Unmarshal(p.out.Bytes(), &a); err != nil {
		p.t.Fatalf("publisher answered %q: %v", p.out.Bytes(), err)
	}
	if a.Error != "" {
		p.t.Fatalf("publisher: %s", a.Error)
	}
	return a
}

// Freeze and Thaw stop the process as a hung host would, and let it go on.
func (p *Publisher) Freeze() { p.signal(syscall.SIGSTOP) }

// Thaw ends Freeze.
func (p *Publisher) Thaw() { p.signal(syscall.SIGCONT) }

// Kill ends the process at once.
func (p *Publisher) Kill() {
	if p.cmd.ProcessState == nil {
		p.signal(syscall.SIGKILL)
		_ = p.cmd.Wait() // it was killed, so it says so
	}
}

func (p *Publisher) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("signal %v: %v", s, err)
	}
}
