package testpython

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Find returns the interpreter's path.
func Find() (string, error) {
	path := os.Getenv("KVSCOUT_PYTHON")
	if path == "" {
		_, file, _, _ := runtime.Caller(0)
		path = filepath.Join(filepath.Dir(file), "..", "..", ".venv", "bin", "python")
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no Python for tests: %w (run `make .venv`, or set KVSCOUT_PYTHON to one with the packages of test/requirements.txt)", err)
	}
	return path, nil
}

// Path is Find for a test, which fails without one.
func Path(t testing.TB) string {
	t.Helper()
	path, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
