package contract

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what takes milliseconds on an idle machine.
const patience = 60 * time.Second

const root = "../.."

// program is kvscout, built once.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kvscout-contract-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "kvscout")
	build := exec.Command("go", "build", "-o", program, "./cmd/kvscout")
	build.Dir = root
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "contract: cannot build kvscout:", err)
		return 1
	}
	return m.Run()
}

// renderer is a vllm-render server as far as its answers go: every body is the tokens 7, 8, 9.
func renderer(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `[{"token_ids":[7,8,9]}]`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// serve runs `kvscout serve` until the test ends, and returns its address, host:port.
func serve(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, append([]string{
		"serve", "--listen", "127.0.0.1:0", "--admin-listen", "off", "--renderer", renderer(t), "--log-level", "debug",
	}, args...)...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "KVSCOUT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = stderr.Close()
		if b, err := os.ReadFile(stderr.Name()); t.Failed() && err == nil {
			t.Logf("kvscout serve wrote:\n%s", b[:min(len(b), 16<<10)])
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	at := strings.LastIndex(line, "127.0.0.1:")
	if err != nil || at < 0 {
		t.Fatalf("kvscout serve says %q, %v", line, err)
	}
	addr, _, _ := strings.Cut(strings.TrimSpace(line[at:]), " ")
	return addr
}
