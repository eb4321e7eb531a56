package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/scorer/admin"
	"github.com/kvscout/kvscout/test/testlog"
)

var adminAddress = regexp.MustCompile(`msg="operators are served" address=(\S+)`)

// operatorsAddress is where the server that writes log serves operators.
func operatorsAddress(t *testing.T, log *testlog.Buffer) string {
	t.Helper()
	var found []string
	eventually(t, "the address for operators", func() bool {
		found = adminAddress.FindStringSubmatch(log.String())
		return found != nil
	})
	return found[1]
}

// page asks operators' listener for a page.
func page(t *testing.T, address, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestAdmin_TellsReadiness(t *testing.T) {
	_, log := startServe(t, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--source", "id=w0,engine=vllm,model=m,events=tcp://127.0.0.1:1")
	address := operatorsAddress(t, log)
	if !strings.HasPrefix(address, "127.0.0.1:") {
		t.Errorf("operators are served on %s", address)
	}
	code, body := page(t, address, "/readyz")
	var got admin.Status
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	if code != http.StatusServiceUnavailable || got.State != "starting" || len(got.Waiting) != 1 || got.Waiting[0] != "w0/0" {
		t.Errorf("a worker that is out of reach: %d %+v", code, got)
	}
	code, body = page(t, address, "/metrics")
	if code != http.StatusOK {
		t.Errorf("metrics: %d", code)
	}
	wants(t, body, "kvscout_build_info{", "go_goroutines ", "process_start_time_seconds ")
}

func TestAdmin_ReadyWithoutWorkers(t *testing.T) {
	_, log := startServe(t, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	address := operatorsAddress(t, log)
	if code, body := page(t, address, "/readyz"); code != http.StatusOK || !strings.Contains(body, `"state":"ready"`) {
		t.Errorf("%d %s", code, body)
	}
}

// While the default address is in use a free one is taken; one that was asked for is an error.
func TestAdmin_AddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	busy := l.Addr().String()
	wants(t, run(t, "serve", "--listen", "127.0.0.1:0", "--admin-listen", busy).err, "admin-listen", "in use")
	wants(t, run(t, "serve", "--listen", "127.0.0.1:0", "--config", writeFile(t, "c.yaml", "admin_listen: "+busy)).err, "in use")

	o := adminOptions{listen: busy}
	log := new(testlog.Buffer)
	operators, err := o.start(t.Context(), newLogger(log, "text", 0))
	if err != nil {
		t.Fatal(err)
	}
	defer operators.stop()
	address := operatorsAddress(t, log)
	if address == busy || !strings.HasPrefix(address, "127.0.0.1:") {
		t.Errorf("operators are served on %s", address)
	}
	if code, _ := page(t, address, "/healthz"); code != http.StatusOK {
		t.Errorf("healthz: %d", code)
	}
	wants(t, log.String(), "in use")
}

func TestAdmin_Off(t *testing.T) {
	for _, off := range []string{"off", ""} {
		_, log := startServe(t, "--listen", "127.0.0.1:0", "--admin-listen", off)
		eventually(t, "it serves", func() bool {
			return strings.Contains(log.String(), "msg=ready") || strings.Contains(log.String(), "msg=serving")
		})
		if text := log.String(); strings.Contains(text, "operators") {
			t.Errorf("%q: %s", off, text)
		}
	}
}

func TestAdmin_WarnsBeyondLoopback(t *testing.T) {
	_, log := startServe(t, "--listen", "127.0.0.1:0", "--admin-listen", "0.0.0.0:0")
	operatorsAddress(t, log)
	wants(t, log.String(), "level=WARN msg=\"operators are served beyond this machine")
}

func TestAdmin_Unix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	_, log := startServe(t, "--listen", "127.0.0.1:0", "--admin-listen", "unix://"+path)
	if got := operatorsAddress(t, log); got != path {
		t.Errorf("operators are served on %s", got)
	}
	if strings.Contains(log.String(), "beyond") {
		t.Error(log.String())
	}
}

// Engines that dial kvscout at the port of operators go before the default and make a fault of an explicit one.
func TestAdmin_PortOfAWorker(t *testing.T) {
	source := "id=w,engine=vllm,model=m,events=tcp://*:9471"
	wants(t, run(t, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:9471", "--source", source).err, "the server's own port")
	cmd := newServe()
	o := adminOptions{listen: defaultAdminListen}
	workers, err := assemble(nil, []string{source})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.resolve(cmd.Flags(), workers); err != nil || o.listen != anyAdminListen {
		t.Errorf("the default: %v, %q", err, o.listen)
	}
}
