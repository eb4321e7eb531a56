package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kvscout/kvscout/test/testpython"
)

// patience is how long a test waits for a condition that takes milliseconds on an idle machine.
const patience = 30 * time.Second

var (
	root    string // of the repository
	program string // kvscout, built once
	python  string // with the packages of test/requirements.txt
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if root, err = filepath.Abs("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if python, err = findPython(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	dir, err := os.MkdirTemp("", "kvscout-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "kvscout")
	build := exec.Command("go", append(append([]string{"build"}, buildFlags...), "-o", program, "./cmd/kvscout")...)
	build.Dir = root
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: cannot build kvscout:", err)
		return 1
	}
	return m.Run()
}

// findPython finds a Python that has the packages. Without one the tests fail: skipping would prove nothing.
func findPython() (string, error) {
	p, err := testpython.Find()
	if err != nil {
		return "", err
	}
	if out, err := exec.Command(p, "-c", "import zmq, msgspec, grpc, grpc_reflection").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s lacks packages of test/requirements.txt: %w %s", p, err, out)
	}
	return p, nil
}

// eventually polls until ok returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !poll(ok) {
		t.Fatalf("not within %v: %s", patience, what)
	}
}

func poll(ok func() bool) bool {
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; !ok(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}
