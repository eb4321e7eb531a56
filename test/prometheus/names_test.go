package prometheus

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	document  = "../../docs/observability.md"
	alerts    = "../../deploy/prometheus/alerts.yaml"
	dashboard = "../../deploy/grafana/kvscout.json"
)

var row = regexp.MustCompile("(?m)^\\| `(kvscout_[a-z0-9_]+)` \\| ([a-z]+) \\| ([^|]*) \\|")

// exported are the metrics of the document, which another test holds to be those of a scrape, with their labels.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{"process_resident_memory_bytes": nil}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		names := append(strings.Fields(strings.ReplaceAll(m[3], ",", " ")), "instance", "job")
		if m[2] == "histogram" {
			out[m[1]+"_bucket"], out[m[1]+"_count"], out[m[1]+"_sum"] = append(names, "le"), names, names
		} else {
			out[m[1]] = names
		}
	}
	if len(out) < 80 {
		t.Fatalf("the document lists %d metrics", len(out))
	}
	return out
}

// check parses an expression and looks its metrics and their labels up.
func check(t *testing.T, known map[string][]string, expr string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", expr, err)
		return
	}
	selected := 0
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		selected++
		names, ok := known[v.Name]
		if !ok {
			t.Errorf("%s: nobody exports %q", expr, v.Name)
		}
		for _, m := range v.LabelMatchers {
			if m.Name != labels.MetricName && names != nil && !contains(names, m.Name) {
				t.Errorf("%s: %s has no label %q", expr, v.Name, m.Name)
			}
		}
		return nil
	})
	if selected == 0 {
		t.Errorf("%s: selects nothing", expr)
	}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// panel is what of a Grafana panel matters here.
type panel struct {
	Type, Title, Description string
	Targets                  []struct{ Expr string }
}

// Every expression of the dashboard is PromQL over metrics that are exported.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Title  string
		Panels []panel
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	known, found := exported(t), 0
	variables := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*")
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q is not described, or empty", p.Title)
		}
		for _, target := range p.Targets {
			check(t, known, variables.Replace(target.Expr))
			found++
		}
	}
	if found < 40 {
		t.Errorf("%d expressions", found)
	}
}
