package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/events/simulate"
)

// What docs/integration.md does with curl works as it stands there, but for the address.
func TestDocs_IntegrationByCurl(t *testing.T) {
	text, err := os.ReadFile("../../docs/integration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```sh\n")
	script, _, ok := strings.Cut(rest, "```")
	if !ok || strings.Count(script, "curl ") != 3 || strings.Count(script, defaultServer) != 1 {
		t.Fatalf("the page has another script: %q", script)
	}
	e := startEngine(t, simulate.Config{Worker: "w0", Model: "demo"})
	server, _ := startServe(t, "--listen", "127.0.0.1:0", "--source", spec(e))
	serveTokens(t, e, simulate.Request{Tokens: tokens(100, 64)})
	listed(t, server, "live #0")
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", strings.Replace(script, defaultServer, server, 1))
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	answers := strings.NewReplacer(" ", "", "\n", "").Replace(string(out))
	wants(t, answers, `"workerId":"w0"`, `"promptTokens":4`, `"scoreId":`, `"outcomes":"1"`, `"equal":"1"`)
}
