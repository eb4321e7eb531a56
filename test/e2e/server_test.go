package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/kvscout/kvscout/test/testport"
)

// process is a child process of a test.
type process struct {
	cmd    *exec.Cmd
	stderr *output
	ended  chan struct{} // closed when the process has been waited for
}

// output gathers what a process writes; only its head and its tail are kept.
type output struct {
	mu         sync.Mutex // guards head and tail
	head, tail []byte
}

const outputKept = 16 << 10

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	if room := outputKept - len(o.head); room > 0 {
		cut := min(room, len(p))
		o.head, p = append(o.head, p[:cut]...), p[cut:]
	}
	o.tail = append(o.tail, p...)
	if len(o.tail) > outputKept {
		o.tail = append([]byte(nil), o.tail[len(o.tail)-outputKept:]...)
	}
	return n, nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.head) + string(o.tail)
}

// start runs cmd until the test ends, and shows its standard error if the test fails.
func start(t testing.TB, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, stderr: new(output), ended: make(chan struct{})}
	cmd.Stderr = p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	// Ends with the process, which the cleanup kills and waits for.
	go func() {
		defer close(p.ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", name, p.stderr)
		}
	})
	return p
}

// kill ends the process at once, as kill -9 does, and waits for it.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only if it has ended
	<-p.ended
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("signal %v: %v", s, err)
	}
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// server is a running `kvscout serve`.
type server struct {
	*process
	addr string // host:port
	url  string
}

// serve starts a server and waits until it answers.
func serve(t testing.TB, args ...string) *server {
	t.Helper()
	addr := "127.0.0.1:" + strconv.Itoa(testport.Free(t, 1))
	cmd := exec.Command(program, append([]string{"serve", "--listen", addr}, args...)...)
	cmd.Env = append(clearedEnv(), "KVSCOUT_LOG_LEVEL=debug") // all that it may write is looked through at the end
	var stdout output
	cmd.Stdout = &stdout
	s := &server{process: start(t, "kvscout serve", cmd), addr: addr, url: "http://" + addr}
	t.Cleanup(func() { // before it is killed
		for _, fault := range []string{"panic", "DATA RACE", "fatal error"} {
			if strings.Contains(s.stderr.String(), fault) {
				t.Errorf("kvscout serve wrote of a %s", fault)
			}
		}
		scan(t, s.stderr.String())
	})
	eventually(t, "kvscout serve answers", func() bool {
		if !s.alive() {
			t.Fatalf("kvscout serve ended: %v\n%s", cmd.ProcessState, s.stderr)
		}
		_, _, err := s.post("kvscout.v1.IndexService/GetStats", []byte("{}"))
		return err == nil
	})
	eventually(t, "the start names its address", func() bool { return strings.Contains(stdout.String(), addr) })
	return s
}

// clearedEnv is the environment without settings of kvscout and of the Go runtime.
func clearedEnv() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "KVSCOUT_") && !strings.HasPrefix(v, "GO") {
			env = append(env, v)
		}
	}
	return env
}

// peakRSS is the most memory the process ever had resident, in bytes.
func (p *process) peakRSS(t testing.TB) int {
	t.Helper()
	return p.status(t, "VmHWM") << 10
}

// status reads a number of /proc/PID/status.
func (p *process) status(t testing.TB, field string) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		if name, value, _ := strings.Cut(string(line), ":"); name == field {
			n, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s in /proc", field)
	return 0
}

// files is the number of open file descriptors.
func (p *process) files(t testing.TB) int {
	t.Helper()
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
