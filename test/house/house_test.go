package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/kvscout/kvscout/"
)

// source is one file that somebody wrote.
type source struct {
	path  string // from the root, with slashes
	lines []string
	files *token.FileSet
	tree  *ast.File
}

func (s *source) folder() string { return filepath.ToSlash(filepath.Dir(s.path)) }
func (s *source) test() bool     { return strings.HasSuffix(s.path, "_test.go") }

func (s *source) line(p token.Pos) int { return s.files.Position(p).Line }

var read = sync.OnceValues(readAll)

// sources are all files of the repository.
func sources(t *testing.T) []*source {
	t.Helper()
	out, err := read()
	if err != nil || len(out) < 500 {
		t.Fatalf("%d files: %v", len(out), err)
	}
	return out
}

func readAll() (out []*source, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", ".tools", ".venv", "gen", "testdata", "bin", "dist"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s := &source{lines: strings.Split(string(text), "\n"), files: token.NewFileSet()}
		if s.path, err = filepath.Rel(root, path); err != nil {
			return err
		}
		s.path = filepath.ToSlash(s.path)
		if s.tree, err = parser.ParseFile(s.files, path, text, parser.ParseComments); err == nil && !ast.IsGenerated(s.tree) {
			out = append(out, s)
		}
		return err
	})
	return out, err
}

// may lists which folders of ours the code below a folder may import; the longest that fits counts. Tests may import more.
var may = map[string][]string{
	"events":                    {"events"},
	"events/zmq/zmqtest":        {"test"},
	"indexer":                   {"indexer", "events"},
	"indexer/indexrpc":          {"indexer", "events", "gen"},
	"render":                    {"render"},
	"scorer":                    {"scorer", "indexer", "events"},
	"scorer/access":             {"scorer", "indexer", "gen"},
	"scorer/bench":              {"scorer", "indexer", "events", "gen"},
	"scorer/client":             {"gen"},
	"scorer/codec":              {"scorer", "gen"},
	"scorer/metrics":            {"scorer", "indexer", "gen"},
	"scorer/scorerpc":           {"scorer", "indexer", "events", "render", "gen"},
	"scorer/server":             {"scorer", "indexer", "gen"},
	"cmd/kvscout":               {"cmd/kvscout/dashboard", "scorer", "indexer", "events", "render", "gen"},
	"cmd/kvscout/dashboard":     {"scorer/latency", "gen"},
	"examples":                  {"scorer/client", "gen"},
	"proto":                     {},
	"test":                      {"scorer", "indexer", "events", "render", "gen", "test"},
	"tools":                     {},
	"render/pyval/pyvaltest":    {"render"},
	"events/jetstream/embedded": {},
}

func TestImports_OneWay(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		rule := s.folder()
		for may[rule] == nil && rule != "." {
			rule = filepath.ToSlash(filepath.Dir(rule))
		}
		if rule == "." {
			t.Errorf("%s: no rule says what it may import", s.path)
			continue
		}
		for _, i := range s.tree.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			ours, ok := strings.CutPrefix(path, module)
			if ok && !slices.ContainsFunc(may[rule], func(f string) bool { return ours == f || strings.HasPrefix(ours, f+"/") }) {
				t.Errorf("%s imports %s", s.path, ours)
			}
		}
	}
}

func TestPackages_SayWhatTheyAre(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	said := make(map[string]bool)
	for _, s := range sources(t) {
		name := filepath.Base(s.path)
		if name == "doc.go" || name == "main.go" && s.tree.Name.Name == "main" {
			said[s.folder()] = said[s.folder()] || strings.TrimSpace(s.tree.Doc.Text()) != ""
		} else if _, found := said[s.folder()]; !found && !s.test() {
			said[s.folder()] = false
		}
	}
	for folder, ok := range said {
		top, _, _ := strings.Cut(folder, "/")
		if !ok {
			t.Errorf("%s has no doc.go", folder)
		}
		if !slices.Contains([]string{"test", "examples", "tools"}, top) && !strings.HasSuffix(folder, "test") && !strings.Contains(string(page), "`"+folder+"`") {
			t.Errorf("docs/architecture.md does not name %s", folder)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, s := range sources(t) {
		if n := len(s.lines) - 1; n >= 400 {
			t.Errorf("%s has %d lines", s.path, n)
		}
		for _, d := range s.tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || s.test() || strings.HasPrefix(s.path, "test/") {
				continue
			}
			if n := s.line(f.End()) - s.line(f.Pos()) + 1; n >= 60 {
				t.Errorf("%s: %s has %d lines", s.path, f.Name.Name, n)
			}
		}
	}
}

var guards = regexp.MustCompile(`(?i)\bguards|\bheld\b`)

func TestGoroutinesAndLocks_AreExplained(t *testing.T) {
	found := 0
	for _, s := range sources(t) {
		ast.Inspect(s.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				found++
				if !s.explained(n) {
					t.Errorf("%s:%d: who ends this goroutine, and who waits for it?", s.path, s.line(n.Pos()))
				}
			case *ast.CallExpr:
				f, ok := n.Fun.(*ast.SelectorExpr)
				if ok && f.Sel.Name == "Go" && len(n.Args) == 1 && !s.explained(n) {
					t.Errorf("%s:%d: who ends this goroutine, and who waits for it?", s.path, s.line(n.Pos()))
				}
			case *ast.StructType:
				for _, f := range n.Fields.List {
					if typed, ok := f.Type.(*ast.SelectorExpr); ok && strings.HasSuffix(typed.Sel.Name, "Mutex") && !guards.MatchString(f.Doc.Text()+f.Comment.Text()) {
						t.Errorf("%s:%d: what does this lock guard?", s.path, s.line(f.Pos()))
					}
				}
			}
			return true
		})
	}
	if found < 20 {
		t.Errorf("only %d go statements", found)
	}
}

// explained is whether a comment stands at the beginning or the end of a statement, or in the few lines before it: several
// goroutines in a row may share one.
func (s *source) explained(n ast.Node) bool {
	const near = 3
	first, last := s.line(n.Pos()), s.line(n.End())
	for _, group := range s.tree.Comments {
		for _, c := range group.List {
			if at := s.line(c.Pos()); at >= first-near && at <= first+1 || at == last {
				return true
			}
		}
	}
	return false
}
