package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fenced  = regexp.MustCompile("(?s)```.*?```")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unnamed = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchors are the headings of a page as links name them.
func anchors(text string) map[string]bool {
	out := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		out[strings.ReplaceAll(unnamed.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return out
}

// Links of pages lead somewhere, and to every page of docs/ leads one.
func TestLinks(t *testing.T) {
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(docs) < 10 {
		t.Fatalf("%d pages: %v", len(docs), err)
	}
	linked := make(map[string]bool)
	for _, page := range append(docs, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "test", "testdata", "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if to != "" {
				target = filepath.Join(filepath.Dir(page), to)
				linked[target] = true
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if there, err := os.ReadFile(target); anchor != "" && (err != nil || !anchors(string(there))[anchor]) {
				t.Errorf("%s: %s has no heading %q", page, to, anchor)
			}
		}
	}
	for _, page := range docs {
		if !linked[page] {
			t.Errorf("no page leads to %s", page)
		}
	}
}
