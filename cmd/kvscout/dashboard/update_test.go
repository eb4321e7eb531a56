package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// nasty are ids and texts that would harm a terminal or a layout.
var nasty = []string{
	"\x1b]0;owned\a\x1b[2J\x1b[31m", "a\nb\tc\r\x00", "\u202eevil", "世界世界世界世界世界世界", "é\u0301\u0301\u0301", "\xff\xfe", "👩‍👩‍👧‍👦 family",
	strings.Repeat("long", 300), "", " ", "\u009b31m",
}

// Invariants 1 and 2: at every size, in every view, whatever the server sends. send checks each frame.
func TestFrames_EverySize(t *testing.T) {
	bad := someStats(60)
	for i, text := range nasty {
		s := someSource(text+fmt.Sprint(i), uint32(i), gapped, 60)
		s.Model, s.Engine, s.Error, s.Rejected = text, text, text, map[string]uint64{text: 5}
		bad.Sources = append(bad.Sources, s)
		bad.Renderers = append(bad.Renderers, &kvscoutv1.RendererStats{Model: text, Renderer: text, Error: text})
	}
	bad.Discovery = &kvscoutv1.DiscoveryStats{Discoverers: []*kvscoutv1.DiscovererStats{{Name: nasty[0], Error: nasty[1]}},
		Pending: []*kvscoutv1.PendingWorker{{WorkerId: nasty[0], Reason: nasty[7]}}}
	bad.Log = &kvscoutv1.LogStats{}
	told := Detail{Worker: &kvscoutv1.Worker{Url: nasty[0], Spec: &kvscoutv1.WorkerSpec{Labels: map[string]string{nasty[0]: nasty[1]}}},
		Scopes: []*kvscoutv1.ScopeStats{{Model: nasty[2], Adapter: nasty[0]}}}
	sizes := []tea.WindowSizeMsg{{}, {Width: 1, Height: 1}, {Width: 59, Height: 40}, {Width: 60, Height: 12}, {Width: 80, Height: 24},
		{Width: 133, Height: 17}, {Width: 500, Height: 120}}
	for _, stats := range []*kvscoutv1.Stats{bad, {}, {Sources: []*kvscoutv1.SourceStats{{}, {}}}} {
		m := NewModel(Options{Server: nasty[0], Detail: func(string, uint32) (Detail, error) { return told, nil }}, began)
		m = send(t, m, answerMsg{stats, began}, answerMsg{stats, began})
		for _, size := range sizes {
			m = send(t, m, size)
			for _, keys := range []string{"1", "2", "3", "4", "?"} {
				m = typeKeys(t, m, keys, "end", "pgup", "down", "home", "pgdown", "up")
			}
			for range len(sourceColumns()) + 1 {
				m = typeKeys(t, m, "2", "right", "r")
			}
			for range nasty {
				m = typeKeys(t, m, "2", "down", "enter")
				m = send(t, m, detailMsg{of: m.of, detail: told})
				m = typeKeys(t, m, "end", "esc")
			}
			m = send(t, m, lostMsg{err: fmt.Errorf("%s", nasty[0]), at: began, again: began})
		}
		if out := everything(m.opts, m.last, 100); strings.ContainsAny(out, "\x1b\x00\a\r\u202e\u009b") {
			t.Errorf("control characters in plain text: %q", out)
		}
	}
}

// rowsOf are the ids of the rows that a frame shows, and which is chosen.
func rowsOf(m Model) (ids []string, chosenID string) {
	for _, l := range strings.Split(ansi.Strip(m.frame()), "\n") {
		f := strings.Fields(strings.TrimPrefix(l, "> "))
		if len(f) > 1 && strings.HasPrefix(f[0], "worker-") {
			ids = append(ids, f[0])
			if strings.HasPrefix(l, "> ") {
				chosenID = f[0]
			}
		}
	}
	return ids, chosenID
}

// Thousands of sources: the chosen one stays in sight, and is followed when others overtake it.
func TestSources_Many(t *testing.T) {
	const n = 5000
	m := NewModel(Options{}, began)
	m = send(t, m, tea.WindowSizeMsg{Width: 80, Height: 24}, answerMsg{manyStats(n, 10), began})
	m = typeKeys(t, m, "2")
	if ids, at := rowsOf(m); len(ids) != 19 || at != "worker-00003" || ids[1] != "worker-00013" {
		t.Errorf("sorted by state: %q is chosen of %q", at, ids)
	}
	m = typeKeys(t, m, "end")
	if ids, at := rowsOf(m); at != "worker-04999" || ids[18] != at {
		t.Errorf("the last: %q of %q", at, ids)
	}
	m = typeKeys(t, m, "up", "up")
	if _, at := rowsOf(m); at != "worker-04997" {
		t.Errorf("two up from the last: %q", at)
	}
	later := manyStats(n, 11)
	later.Sources[4997].Freshness.State = stale
	m = send(t, m, answerMsg{later, began.Add(time.Second)})
	if ids, at := rowsOf(m); at != "worker-04997" || ids[len(ids)-1] == at && len(ids) > 1 && ids[0] == at {
		t.Errorf("it is stale now: %q is chosen of %q", at, ids)
	}
	if m.sources.cursor >= 600 {
		t.Errorf("row %d, though it is one of 501 stale ones", m.sources.cursor)
	}
	m = typeKeys(t, m, "home", "right", "right", "right") // by device blocks, the most first
	if ids, at := rowsOf(m); at != "worker-04999" || ids[1] != "worker-04998" {
		t.Errorf("by device blocks: %q of %q\n%s", at, ids, ansi.Strip(m.frame()))
	}
	m = typeKeys(t, m, "r")
	if ids, _ := rowsOf(m); ids[0] != "worker-00000" {
		t.Errorf("turned: %q", ids)
	}
	begin := time.Now()
	for i := range 10 {
		m = send(t, m, answerMsg{manyStats(n, uint64(12+i)), began.Add(time.Second)})
	}
	t.Logf("%v for an answer of %d sources and its frame", time.Since(begin)/10, n)
}

func TestFilter(t *testing.T) {
	m := show(t, 120, 24)
	for text, want := range map[string]int{
		"": 4, "8000": 4, "10.0.0.5": 2, "QWEN": 3, "state:gap": 1, "!state:gap": 3, "!live": 1, "model:llama": 1, "worker:llama": 0,
		"qwen !gap": 2, "engine:sglang": 1, "flag:flagged": 1, "flagged": 1, "bound:orphans": 1, "exact": 3, "state:": 4, "!": 4,
		"gap live": 0, "unknown:field": 0, "http:": 0, "state": 0, ":8000": 4,
	} {
		m.setFilter(text)
		if got := len(m.sources.rows); got != want {
			t.Errorf("%q takes %d sources, want %d", text, got, want)
		}
	}
}

// A filter is typed with the list following each letter, kept by enter and dropped by escape; keys of the view are letters
// meanwhile.
func TestFilter_Typed(t *testing.T) {
	m := typeKeys(t, show(t, 80, 24), "/", "q", "w", "e", "n")
	if !m.typing || m.view != viewSources || len(m.sources.rows) != 3 {
		t.Fatalf("typing %v in view %d, %d rows", m.typing, m.view, len(m.sources.rows))
	}
	m = typeKeys(t, m, "backspace", "backspace", "backspace", "backspace", "2", "?", "enter")
	if m.typing || m.view != viewSources || m.input.Value() != "2?" || len(m.sources.rows) != 0 {
		t.Errorf("%q takes %d rows in view %d", m.input.Value(), len(m.sources.rows), m.view)
	}
	m = typeKeys(t, m, "esc")
	if len(m.filter) != 0 || len(m.sources.rows) != 4 {
		t.Errorf("escape keeps the filter %v", m.filter)
	}
	m = send(t, typeKeys(t, m, "/"), tea.PasteMsg{Content: "state:gap\n\x1b[2J"})
	if len(m.sources.rows) != 1 && m.input.Value() != "state:gap [2J" {
		t.Errorf("pasted: %q", m.input.Value())
	}
	if _, cmd := m.Update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}); cmd == nil {
		t.Error("ctrl+c does not quit while a filter is typed")
	}
}

// While paused the numbers stand still; what came meanwhile is shown at once afterwards, with rates of its own second.
func TestPause(t *testing.T) {
	m := typeKeys(t, show(t, 100, 24), "p")
	before := ansi.Strip(strings.Join(m.body(), "\n"))
	for n := range uint64(3) {
		m = send(t, m, answerMsg{someStats(100 + n), began.Add(time.Duration(10+n) * time.Second)})
	}
	if got := ansi.Strip(strings.Join(m.body(), "\n")); got != before {
		t.Errorf("the numbers moved:\n%s\nbefore:\n%s", got, before)
	}
	if title := ansi.Strip(m.title()); !strings.Contains(title, "PAUSED, 10s old") {
		t.Errorf("title %q", title)
	}
	m = typeKeys(t, m, "p")
	if got := ansi.Strip(m.frame()); strings.Contains(got, "PAUSED") || !strings.Contains(got, "up 1m42s") || !strings.Contains(got, "1k/s answered") {
		t.Errorf("after the pause:\n%s", got)
	}
}

// A detail is asked for when it is opened and then now and then, not with each answer.
func TestDetail_AskedForNowAndThen(t *testing.T) {
	asked := 0
	m := NewModel(Options{Detail: func(worker string, _ uint32) (Detail, error) { asked++; return Detail{}, nil }}, began)
	m = send(t, m, answerMsg{someStats(60), began})
	m = typeKeys(t, m, "2")
	next, cmd := m.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	if m = next.(Model); cmd == nil || m.view != viewDetail {
		t.Fatal("nothing is asked for")
	}
	if msg, ok := cmd().(detailMsg); !ok || msg.of != m.of || asked != 1 {
		t.Errorf("asked %d times for %v", asked, msg.of)
	}
	commands := 0
	for i := range 11 {
		next, cmd := m.Update(answerMsg{someStats(61 + uint64(i)), began.Add(time.Duration(1+i) * time.Second)})
		if m = next.(Model); cmd != nil {
			commands++
		}
	}
	if commands != 2 {
		t.Errorf("asked again %d times in 11 s, want every %v", commands, askEvery)
	}
}
