package prometheus

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// source is a source's labels.
const source = `instance="a",worker="w0",rank="0"`

// cases are, for each alert, series by the minute that make it fire, and ones that do not. x is the time that counts.
var cases = map[string]struct{ fires, silent string }{
	"KvscoutAbsent":           {`other{} 0x60`, `kvscout_ready{instance="a"} 0x60`},
	"KvscoutNotReady":         {`kvscout_ready{instance="a"} 0x60`, `kvscout_ready{instance="a"} 1x60`},
	"KvscoutSourceStale":      {`kvscout_source_state{` + source + `,state="stale"} 1x60`, `kvscout_source_state{` + source + `,state="live"} 1x60`},
	"KvscoutSourceNeverHeard": {`kvscout_source_state{` + source + `,state="connecting"} 1x60`, `kvscout_source_state{` + source + `,state="replaying"} 1x60`},
	"KvscoutSourceGap":        {`kvscout_source_gaps_total{` + source + `} 0x50 1x10`, `kvscout_source_gaps_total{` + source + `} 1x60`},
	"KvscoutSourceLag":        {`kvscout_source_lag_seconds{` + source + `} 1.5x60`, `kvscout_source_lag_seconds{` + source + `} 0.5x60`},
	"KvscoutEventsRejected":   {`kvscout_source_rejected_total{` + source + `,reason="bad_event"} 0+60x60`, `kvscout_source_rejected_total{` + source + `,reason="duplicate"} 0+60x60`},
	"KvscoutAccuracyFell":     {`kvscout_source_flagged{` + source + `,cause="block_size"} 1x60`, `kvscout_source_accuracy_ratio{` + source + `} 0.1x60`},
	"KvscoutAccuracyFalling":  {`kvscout_source_accuracy_ratio{` + source + `} 0.8x60`, `kvscout_source_accuracy_ratio{` + source + `} 0.95x60`},
	"KvscoutRendererDown":     {`kvscout_renderer_ready{instance="a",model="m",renderer="r"} 0x60`, `kvscout_renderer_ready{instance="a",model="m",renderer="r"} 1x60`},
	"KvscoutIndexAtCap": {"kvscout_source_evicted_blocks_total{" + source + "} 0+10x60\n  kvscout_index_max_bytes{instance=\"a\"} 1000x60",
		"kvscout_source_evicted_blocks_total{" + source + "} 10x60\n  kvscout_index_max_bytes{instance=\"a\"} 1000x60"},
	"KvscoutOverloaded": {`kvscout_access_refused_total{instance="a",reason="OVERLOADED"} 0+5x60`, `kvscout_score_requests_total{instance="a",outcome="error",reason="NO_PROMPT"} 0+5x60`},
	"KvscoutSlow": {"kvscout_score_duration_seconds_bucket{instance=\"a\",le=\"0.016\"} 0+50x60\n  kvscout_score_duration_seconds_bucket{instance=\"a\",le=\"0.1\"} 0+100x60\n  kvscout_score_duration_seconds_bucket{instance=\"a\",le=\"+Inf\"} 0+100x60",
		"kvscout_score_duration_seconds_bucket{instance=\"a\",le=\"0.016\"} 0+100x60\n  kvscout_score_duration_seconds_bucket{instance=\"a\",le=\"0.1\"} 0+100x60\n  kvscout_score_duration_seconds_bucket{instance=\"a\",le=\"+Inf\"} 0+100x60"},
	"KvscoutSnapshotOld":        {`kvscout_snapshot_age_seconds{instance="a"} 2000x60`, `kvscout_snapshot_age_seconds{instance="a"} 60x60`},
	"KvscoutLogBehind":          {`kvscout_log_unreached_seconds{instance="a"} 60x60`, `kvscout_log_replica_lag_seconds{instance="a"} 2x60`},
	"KvscoutCertificateExpires": {`kvscout_access_certificate_seconds{instance="a"} 86400x60`, `kvscout_access_certificate_seconds{instance="a"} 9999999x60`},
}

// loaded are the rules as Prometheus loads them.
func loaded(t *testing.T) []rulefmt.Rule {
	t.Helper()
	text, err := os.ReadFile(alerts)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), promslog.NewNopLogger())
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var out []rulefmt.Rule
	for _, g := range groups.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

// Every rule is over metrics that are exported, and says what it means.
func TestAlerts_Names(t *testing.T) {
	known := exported(t)
	for _, r := range loaded(t) {
		check(t, known, r.Expr)
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" || r.For == 0 {
			t.Errorf("%s lacks a summary, a description, a severity or a time", r.Alert)
		}
	}
}

// Every alert fires on what it is for, not before its time, and on nothing else.
func TestAlerts_Fire(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range loaded(t) {
		seen[r.Alert] = true
		c, ok := cases[r.Alert]
		if !ok {
			t.Errorf("%s has no case", r.Alert)
			continue
		}
		if first := firing(t, r, c.fires); first < 0 {
			t.Errorf("%s does not fire", r.Alert)
		} else if first < time.Duration(r.For) {
			t.Errorf("%s fires after %v, its time is %v", r.Alert, first, r.For)
		}
		if first := firing(t, r, c.silent); first >= 0 {
			t.Errorf("%s fires after %v on what is well", r.Alert, first)
		}
	}
	for name := range cases {
		if !seen[name] {
			t.Errorf("there is no alert %s", name)
		}
	}
}

// firing is when the rule first fires within an hour of the series, -1 if never.
func firing(t *testing.T, r rulefmt.Rule, series string) time.Duration {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+series+"\n")
	defer storage.Close()
	engine := promqltest.NewTestEngine(t, false, 0, 100_000)
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
	if err != nil {
		t.Fatal(err)
	}
	rule := rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), time.Duration(r.KeepFiringFor), labels.FromMap(r.Labels),
		labels.FromMap(r.Annotations), labels.EmptyLabels(), "", true, promslog.NewNopLogger())
	for at := time.Duration(0); at <= time.Hour; at += time.Minute {
		if _, err := rule.Eval(context.Background(), 0, time.Unix(0, 0).Add(at), rules.EngineQueryFunc(engine, storage), nil, 0); err != nil {
			t.Fatal(err)
		}
		for _, a := range rule.ActiveAlerts() {
			if a.State != rules.StateFiring {
				continue
			}
			if text := a.Annotations.Get("summary"); text == "" || strings.Contains(text, "{{") || strings.Contains(text, "<error") || strings.Contains(text, "<no value>") {
				t.Errorf("%s says %q", r.Alert, text)
			}
			return at
		}
	}
	return -1
}
