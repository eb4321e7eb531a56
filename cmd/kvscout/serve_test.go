package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kvscout/kvscout/events/simulate"
	"github.com/kvscout/kvscout/test/testlog"
)

// process is a kvscout of its own.
type process struct {
	cmd     *exec.Cmd
	address string // host:port
	log     *testlog.Buffer
}

// kvscoutProcess is a kvscout that is yet to be started. The test's end kills it.
func kvscoutProcess(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), runMain+"=1")
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill() // it has ended already, if all went well
		}
	})
	return cmd
}

// startProcess runs `kvscout serve` as a process, as a shell would.
func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{cmd: kvscoutProcess(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...), log: new(testlog.Buffer)}
	p.cmd.Stderr = p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no address: %v\n%s", err, p.log)
	}
	_, p.address, _ = strings.Cut(strings.TrimSpace(line), "http://")
	return p
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func TestServeStopsOnSignal(t *testing.T) {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := startProcess(t, "--source", "id=w0,engine=vllm,model=m,events=tcp://127.0.0.1:1")
		wants(t, ok(t, "workers", "--server", "http://"+p.address), "w0")
		p.signal(t, s)
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("%v: %v\n%s", s, err, p.log)
		}
		wants(t, p.log.String(), "listening to source", "source=w0/0", "events=tcp://127.0.0.1:1")
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	p := startProcess(t, "--shutdown-grace", "1m")
	// A call under way: its body never comes.
	conn, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /kvscout.v1.ScoreService/Score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	// A second connection that is answered shows that the first was accepted: they queue in order.
	wants(t, ok(t, "workers", "--server", "http://"+p.address), "no workers")
	p.signal(t, syscall.SIGTERM)
	eventually(t, "the listener closes", func() bool {
		c, err := net.Dial("tcp", p.address)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	began := time.Now()
	p.signal(t, syscall.SIGTERM)
	var exit *exec.ExitError
	if err := p.cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("got %v\n%s", err, p.log)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestServeOnUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	address, _ := startServe(t, "--listen", "unix://"+path)
	if address != "unix://"+path {
		t.Errorf("it tells %q", address)
	}
	for _, protocol := range []string{"connect", "grpc", "grpcweb"} {
		wants(t, ok(t, "workers", "--server", address, "--protocol", protocol), "no workers")
	}
	r := run(t, "serve", "--listen", "unix://"+path)
	if r.code != exitFailed {
		t.Errorf("a second server on the socket exits with %d", r.code)
	}
	wants(t, r.err, "in use")
}

func TestServeLogsJSON(t *testing.T) {
	_, log := startServe(t, "--listen", "127.0.0.1:0", "--log-format", "json", "--source", "id=w0,engine=vllm,model=m")
	eventually(t, "a log", func() bool { return strings.Contains(log.String(), `"serving"`) })
	for line := range strings.Lines(log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %q", line)
		}
	}
}

func TestServeConnectJSON(t *testing.T) {
	address, _ := startServe(t, "--listen", "127.0.0.1:0", "--source", "id=w0,engine=vllm,model=m")
	res, err := http.Post(address+"/kvscout.v1.IndexService/ListWorkers", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", res.Status, err)
	}
	wants(t, string(body), `"workerId":"w0"`)
}

// Bodies go to the renderer unchanged; what it answers is scored.
func TestServeRenders(t *testing.T) {
	bodies := make(chan string, 2)
	rendered := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return // health
		}
		body, _ := io.ReadAll(r.Body)
		bodies <- r.URL.Path + " " + string(body)
		ids, _ := json.Marshal(tokens(100, 40))
		if strings.HasPrefix(r.URL.Path, "/v1/completions") {
			fmt.Fprintf(w, `[{"token_ids": %s}]`, ids)
			return
		}
		fmt.Fprintf(w, `{"token_ids": %s}`, ids)
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- rendered.Serve(l) }() // ended by Close in the cleanup, which waits
	t.Cleanup(func() { rendered.Close(); <-done })

	e := startEngine(t, simulate.Config{Worker: "w0", Model: "m"})
	address, _ := startServe(t, "--listen", "127.0.0.1:0", "--source", spec(e), "--renderer", "http://"+l.Addr().String())
	if _, err := e.Serve(simulate.Request{Tokens: tokens(100, 40)}); err != nil {
		t.Fatal(err)
	}
	listed(t, address, "live #0")

	wants(t, ok(t, "score", "--server", address, "--model", "m", "--prompt", `say "hi"`), "prompt 40 tokens", "rendered by", " 32    32 ")
	if got, want := <-bodies, `/v1/completions/render {"model":"m","prompt":"say \"hi\""}`; got != want {
		t.Errorf("the renderer got %q, want %q", got, want)
	}
	const body = `{ "messages": [],  "model":"m" }`
	wants(t, ok(t, "score", "--server", address, "--body", writeFile(t, "b.json", body), "--return-tokens", "--json"),
		`"packed":"ZAAAAGUAAABmAAAA`) // Python: base64.b64encode(struct.pack('<3i', 100, 101, 102))
	if got, want := <-bodies, "/v1/chat/completions/render "+body; got != want {
		t.Errorf("the renderer got %q, want %q", got, want)
	}
	// It is at hand now. A tenant has nothing of it.
	wants(t, ok(t, "score", "--server", address, "--body", writeFile(t, "b.json", body), "--header", "X-Tenant-Id=a"), " 0     0 ")
	wants(t, ok(t, "stats", "--server", address), "(others)", "vllm-render@", "true", " 2      1 ")
}
