package indexrpc_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/indexer/indexrpc"
)

// proto/ names every reason that a caller may get, and no other.
func TestReasons_AreDocumented(t *testing.T) {
	files, err := filepath.Glob("../../proto/kvscout/v1/*.proto")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	documented := make(map[string]bool)
	// "NOT_FOUND: UNKNOWN_MODEL, UNKNOWN_WORKER (why), ..." in the comments of services and methods, up to the messages.
	comment := regexp.MustCompile(`(?m)^\s*//(.*)$`)
	name := regexp.MustCompile(`\b[A-Z][A-Z0-9]*(_[A-Z0-9]+)*\b`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		services, _, _ := strings.Cut(string(text), "\nmessage ")
		if !strings.Contains(services, "\nservice ") {
			continue
		}
		for _, c := range comment.FindAllStringSubmatch(services, -1) {
			for _, n := range name.FindAllString(c[1], -1) {
				documented[n] = true
			}
		}
	}
	known := make(map[string]bool)
	for r := range indexrpc.ReasonCount {
		known[r.String()] = true
		if !documented[r.String()] {
			t.Errorf("no method is said to answer %s", r)
		}
	}
	if len(known) != int(indexrpc.ReasonCount) {
		t.Errorf("%d names of %d reasons", len(known), indexrpc.ReasonCount)
	}
	for n := range documented {
		if strings.Contains(n, "_") && !known[n] && !otherWords[n] {
			t.Errorf("%s is documented, and nothing answers it", n)
		}
	}
}

// otherWords are the codes of gRPC, and a reason of bounds.
var otherWords = map[string]bool{
	"INVALID_ARGUMENT": true, "NOT_FOUND": true, "FAILED_PRECONDITION": true, "RESOURCE_EXHAUSTED": true,
	"PERMISSION_DENIED": true, "HISTORY_MISSING": true,
}
