//go:build kubernetes

package kubernetes

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
)

// patience is how long a test waits for a condition. A server that was down is tried again every 15 s at the latest.
const patience = time.Minute

var server string // kubetestapi

func TestMain(m *testing.M) {
	if server = os.Getenv("KVSCOUT_KUBETESTAPI"); server == "" {
		fmt.Fprintln(os.Stderr, "KVSCOUT_KUBETESTAPI does not name the API server; run `make test-kubernetes`")
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// api is a running API server with its etcd, in one process.
type api struct {
	*testing.T
	URL, CAFile, Token, Kubeconfig string

	dir   string
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
}

// startAPI starts an API server. Arguments are kube-apiserver's.
func startAPI(t *testing.T, args ...string) *api {
	t.Helper()
	a := &api{T: t, dir: t.TempDir()}
	a.start(args...)
	t.Cleanup(func() { a.kill() })
	return a
}

func (a *api) start(args ...string) {
	a.Helper()
	flags := []string{"-dir", a.dir}
	if a.URL != "" { // as before
		u, err := url.Parse(a.URL)
		if err != nil {
			a.Fatal(err)
		}
		flags = append(flags, "-port", u.Port(), "-token", a.Token)
	}
	a.cmd = exec.Command(server, append(append(flags, "--"), args...)...)
	log, err := os.Create(filepath.Join(a.dir, "log"))
	if err != nil {
		a.Fatal(err)
	}
	defer log.Close()
	a.cmd.Stderr = log
	if a.stdin, err = a.cmd.StdinPipe(); err != nil { // the server ends when it closes, so it cannot outlive this process
		a.Fatal(err)
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		a.Fatal(err)
	}
	if err := a.cmd.Start(); err != nil {
		a.Fatal(err)
	}
	ended := make(chan struct{})
	a.ended = ended
	line := make(chan []byte, 1)
	go func() { // ends with the process, which kill ends and waits for
		defer close(ended)
		b, _ := bufio.NewReader(out).ReadBytes('\n')
		line <- b
		_, _ = io.Copy(io.Discard, out)
		_ = a.cmd.Wait()
	}()
	select {
	case b := <-line:
		if err := json.Unmarshal(b, a); err != nil {
			text, _ := os.ReadFile(log.Name())
			a.Fatalf("the API server did not start: %v\n%s", err, text[max(0, len(text)-4000):])
		}
	case <-time.After(2 * time.Minute):
		a.Fatal("the API server is not ready after 2 minutes")
	}
}

// kill ends the server with SIGKILL.
func (a *api) kill() {
	_ = a.cmd.Process.Kill() // it may have ended
	<-a.ended
	_ = a.stdin.Close()
}

// config is a client's, as the admin or with another token.
func (a *api) config(token string) *rest.Config {
	if token == "" {
		token = a.Token
	}
	return &rest.Config{Host: a.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAFile: a.CAFile}}
}
