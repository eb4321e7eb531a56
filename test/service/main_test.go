package service

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvscout/kvscout/gen/kvscout/v1/kvscoutv1connect"
)

// patience is how long a test waits for a condition that takes milliseconds on an idle machine.
const patience = 60 * time.Second

var (
	program string // kvscout, built once
	seed    = flag.Uint64("service.seed", 0, "seed of what is random; 0 takes a new one")
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	dir, err := os.MkdirTemp("", "kvscout-service-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "kvscout")
	build := exec.Command("go", "build", "-o", program, "../../cmd/kvscout")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "service: cannot build kvscout:", err)
		return 1
	}
	return m.Run()
}

// server is a running `kvscout serve`.
type server struct {
	cmd    *exec.Cmd
	addr   string
	ended  chan struct{} // closed when it has been waited for
	client *http.Client
	score  kvscoutv1connect.ScoreServiceClient
	index  kvscoutv1connect.IndexServiceClient
}

// output is what a process writes; the last of it is kept.
type output struct {
	mu   sync.Mutex // guards tail and line
	tail []byte
	line chan string // gets the first line, once
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = append(o.tail, p...)
	if first, _, whole := bytes.Cut(o.tail, []byte("\n")); whole && o.line != nil {
		o.line <- string(first)
		o.line = nil
	}
	if cut := len(o.tail) - 16<<10; cut > 0 {
		o.tail = append([]byte(nil), o.tail[cut:]...)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.tail)
}

// serve starts a server, which ends with the test at the latest, and waits until it listens.
func serve(t *testing.T, args ...string) *server {
	t.Helper()
	return serveIn(t, nil, args...)
}

// serveIn is serve with variables of the environment beside.
func serveIn(t *testing.T, env []string, args ...string) *server {
	t.Helper()
	cmd := exec.Command(program, append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "off"}, args...)...)
	line := make(chan string, 1)
	cmd.Env, cmd.Stdout = append(clearedEnv(), env...), &output{line: line}
	errs := new(output)
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{cmd: cmd, ended: make(chan struct{})}
	go func() { defer close(s.ended); _ = cmd.Wait() }() // ends with the process, which the cleanup kills and waits for
	t.Cleanup(func() {
		s.kill()
		for _, fault := range []string{"panic", "fatal error", "DATA RACE"} {
			if strings.Contains(errs.String(), fault) {
				t.Errorf("kvscout serve wrote of a %s", fault)
			}
		}
		if t.Failed() {
			t.Logf("kvscout serve wrote:\n%s", errs)
		}
	})
	select {
	case first := <-line:
		s.addr = strings.TrimPrefix(first, "kvscout serves on http://")
	case <-s.ended:
		t.Fatalf("kvscout serve ended:\n%s", errs)
	case <-time.After(patience):
		t.Fatal("kvscout serve does not tell its address")
	}
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: patience}
	t.Cleanup(s.client.CloseIdleConnections)
	s.score = kvscoutv1connect.NewScoreServiceClient(s.client, "http://"+s.addr)
	s.index = kvscoutv1connect.NewIndexServiceClient(s.client, "http://"+s.addr)
	return s
}

// kill ends the server at once, as kill -9 does, and waits for it.
func (s *server) kill() {
	_ = s.cmd.Process.Kill() // fails only if it has ended
	<-s.ended
}

// clearedEnv is the environment without settings of kvscout and of the Go runtime.
func clearedEnv() (env []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "KVSCOUT_") && !strings.HasPrefix(v, "GO") {
			env = append(env, v)
		}
	}
	return env
}

// eventually polls until ok says nothing is missing any more.
func eventually(t *testing.T, missing func() string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(pause)
	}
}
