package dashboard

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

var update = flag.Bool("update", false, "write the frames of testdata anew; look at each before you keep it")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// began is when every test's view began.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	live   = kvscoutv1.FreshnessState_FRESHNESS_STATE_LIVE
	stale  = kvscoutv1.FreshnessState_FRESHNESS_STATE_STALE
	gapped = kvscoutv1.FreshnessState_FRESHNESS_STATE_GAP
	behind = kvscoutv1.FreshnessState_FRESHNESS_STATE_REPLAYING
)

// someSource is a source after n seconds.
func someSource(id string, rank uint32, state kvscoutv1.FreshnessState, n uint64) *kvscoutv1.SourceStats {
	return &kvscoutv1.SourceStats{
		WorkerId: id, Rank: rank, Model: "qwen3-32b", Engine: "vllm", HistoryComplete: state == live, StateSeconds: float64(10 * n),
		Freshness: &kvscoutv1.Freshness{State: state, LastSequence: proto.Uint64(100 * n), AgeSeconds: proto.Float64(0.25)},
		Bound:     &kvscoutv1.Bound{Kind: kvscoutv1.BoundKind_BOUND_KIND_EXACT}, LagSeconds: proto.Float64(0.0004),
		Connections: 1, Bytes: 4096 * n, Batches: 100 * n, StoredEvents: 90 * n, RemovedEvents: 40 * n,
		Tiers: []*kvscoutv1.TierBlocks{
			{Tier: kvscoutv1.Tier_TIER_DEVICE, Blocks: 12_345}, {Tier: kvscoutv1.Tier_TIER_HOST, Blocks: 678},
		},
	}
}

// someStats are those of a server after n seconds: four sources, two of which need a person.
func someStats(n uint64) *kvscoutv1.Stats {
	late := someSource("10.0.0.7:8000", 0, gapped, n)
	late.Gaps, late.LostBatches, late.Error = 2, 17, "batches 41 to 57 are lost"
	late.Rejected = map[string]uint64{"duplicate": 3 * n, "bad_event": 1}
	late.OrphansWaiting, late.Resets = 4, 1
	late.Bound = &kvscoutv1.Bound{Kind: kvscoutv1.BoundKind_BOUND_KIND_LOWER, Reasons: []kvscoutv1.BoundReason{
		kvscoutv1.BoundReason_BOUND_REASON_HISTORY_MISSING, kvscoutv1.BoundReason_BOUND_REASON_ORPHANS_WAITING}}
	wrong := someSource("10.0.0.8:8000", 0, live, n)
	wrong.Model, wrong.Engine = "llama-4", "sglang"
	wrong.Accuracy = &kvscoutv1.Accuracy{Outcomes: 40, Equal: 10, Over: 30, OverTokens: 4800, Wrong: 30, Recent: proto.Float64(0.25),
		Flagged: true, Cause: kvscoutv1.AccuracyCause_ACCURACY_CAUSE_BLOCK_SIZE}
	fine := someSource("10.0.0.5:8000", 1, live, n)
	fine.Accuracy = &kvscoutv1.Accuracy{Outcomes: 200, Equal: 199, Under: 1, UnderTokens: 16, Recent: proto.Float64(1)}
	return &kvscoutv1.Stats{
		IndexVersion: 1000 * n, Uptime: durationpb.New(time.Duration(n) * time.Second), Scopes: 3, Blocks: 31_000, HolderBlocks: 52_092,
		Handles: 50_000, IndexBytes: 3 << 20, MaxIndexBytes: 1 << 30,
		Readiness: &kvscoutv1.Readiness{State: kvscoutv1.ServiceState_SERVICE_STATE_DEGRADED, Degraded: []string{"10.0.0.7:8000/0"},
			Flagged: []string{"10.0.0.8:8000/0"}},
		Sources: []*kvscoutv1.SourceStats{someSource("10.0.0.5:8000", 0, live, n), fine, late, wrong},
		Score: &kvscoutv1.ScoreStats{
			Requests: 1010 * n, Errors: map[string]uint64{"UNKNOWN_MODEL": 8 * n, "OVERLOADED": 2 * n}, InFlight: 3, MaxInFlight: 4096,
			Routed: 5, RoutedWaiting: 1, RoutedConfirmed: 4, Remembered: 12,
			Latency: &kvscoutv1.LatencyStats{Count: 1000 * n, SumSeconds: 0.0002 * 1000 * float64(n), Buckets: []*kvscoutv1.LatencyBucket{
				{LowerSeconds: 131.072e-6, UpperSeconds: 163.84e-6, Count: 890 * n},
				{LowerSeconds: 327.68e-6, UpperSeconds: 393.216e-6, Count: 100 * n},
				{LowerSeconds: 3.670016e-3, UpperSeconds: 4.194304e-3, Count: 10 * n},
			}},
		},
		Renderers: []*kvscoutv1.RendererStats{{Model: "qwen3-32b", Renderer: "vllm@10.0.0.9:8082", Error: "connection refused", Calls: 77}},
	}
}

// show is a view of this size that has had three answers.
func show(t *testing.T, w, h int) Model {
	t.Helper()
	m := NewModel(Options{Server: "http://127.0.0.1:9470"}, began)
	m = send(t, m, tea.WindowSizeMsg{Width: w, Height: h})
	for n := range uint64(3) {
		m = send(t, m, answerMsg{someStats(60 + n), began.Add(time.Duration(n) * time.Second)})
	}
	return m
}

func send(t *testing.T, m Model, msgs ...tea.Msg) Model {
	t.Helper()
	for _, msg := range msgs {
		next, _ := m.Update(msg)
		m = next.(Model)
		checkFrame(t, m)
	}
	return m
}

// typeKeys presses keys, by their names.
func typeKeys(t *testing.T, m Model, names ...string) Model {
	t.Helper()
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft,
		"right": tea.KeyRight, "tab": tea.KeyTab, "end": tea.KeyEnd, "home": tea.KeyHome, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp,
		"backspace": tea.KeyBackspace}
	for _, name := range names {
		k := tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
		if code, ok := codes[name]; ok {
			k = tea.KeyPressMsg{Code: code}
		}
		m = send(t, m, k)
	}
	return m
}

// checkFrame holds a frame against invariants 1 and 2.
func checkFrame(t *testing.T, m Model) {
	t.Helper()
	lines := strings.Split(m.frame(), "\n")
	if len(lines) != max(1, m.height) {
		t.Fatalf("%d lines on a screen of %dx%d:\n%s", len(lines), m.width, m.height, m.frame())
	}
	for i, l := range lines {
		if n := ansi.StringWidth(l); n > max(0, m.width) {
			t.Fatalf("line %d is %d wide on a screen of %dx%d: %q", i, n, m.width, m.height, l)
		}
		for _, r := range ansi.Strip(l) {
			if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e {
				t.Fatalf("line %d has %q: %q", i, r, l)
			}
		}
	}
}

// wantFrame compares a frame with the one in testdata.
func wantFrame(t *testing.T, name string, m Model) {
	t.Helper()
	wantText(t, name, ansi.Strip(m.frame())+"\n")
}

func wantText(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nas it is:\n%s", name, diff, got)
	}
}

// manyStats has n sources, of which every tenth is stale.
func manyStats(n int, second uint64) *kvscoutv1.Stats {
	s := someStats(second)
	s.Sources = nil
	for i := range n {
		state := live
		if i%10 == 3 {
			state = stale
		}
		src := someSource(fmt.Sprintf("worker-%05d", i), 0, state, second)
		src.Tiers[0].Blocks = uint64(i + 1)
		s.Sources = append(s.Sources, src)
	}
	return s
}
