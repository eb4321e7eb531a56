package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/test/testpython"
)

// The example of a router in Python, with stubs that grpcio-tools generate as it says.
func TestExamples_PythonStubs(t *testing.T) {
	python := testpython.Path(t)
	stubs := t.TempDir()
	protos, err := filepath.Glob("../../proto/kvscout/v1/*.proto")
	if err != nil || len(protos) == 0 {
		t.Fatalf("no protos: %v", err)
	}
	generate := exec.Command(python, append([]string{"-m", "grpc_tools.protoc", "-I", "../../proto", "--python_out=" + stubs, "--grpc_python_out=" + stubs}, protos...)...)
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server, _ := scored(t)
	router := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), python, append([]string{"../../examples/python/router.py", strings.TrimPrefix(server, "http://")}, args...)...)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+stubs)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	args := []string{"m"}
	for _, id := range append(tokens(100, 64), 7) {
		args = append(args, strconv.Itoa(int(id)))
	}
	out, err := router(args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wants(t, out, "w0/0 score 0.985, 64 of 65 tokens reusable", "predicted 64, 0 of 1 equal")
	out, err = router("other", "1", "2")
	if err == nil {
		t.Error("an unknown model exits with 0")
	}
	wants(t, out, "NOT_FOUND UNKNOWN_MODEL:")
}
