package dashboard

import (
	"errors"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// Every view at the smallest size that is promised, and larger ones.
func TestFrames(t *testing.T) {
	for _, tt := range []struct {
		name string
		w, h int
		keys []string
	}{
		{"overview-80x24", 80, 24, nil},
		{"overview-140x40", 140, 40, nil},
		{"sources-80x24", 80, 24, []string{"2"}},
		{"sources-200x20", 200, 20, []string{"2"}},
		{"calls-80x24", 80, 24, []string{"3"}},
		{"accuracy-100x24", 100, 24, []string{"4"}},
		{"detail-80x24", 80, 24, []string{"2", "enter"}},
		{"filter-80x24", 80, 24, []string{"2", "/", "!", "g", "a", "p"}},
		{"filtered-80x12", 80, 12, []string{"/", "q", "w", "e", "n", "enter"}},
		{"help-80x24", 80, 24, []string{"?"}},
		{"help-end-100x30", 100, 30, []string{"?", "end"}},
		{"small-59x8", 59, 8, nil},
	} {
		t.Run(tt.name, func(t *testing.T) { wantFrame(t, tt.name, typeKeys(t, show(t, tt.w, tt.h), tt.keys...)) })
	}
}

// Before the first answer, and after the server went away: the numbers stay and are marked as old.
func TestFrames_NotConnected(t *testing.T) {
	m := send(t, NewModel(Options{Server: "http://127.0.0.1:9470"}, began), tea.WindowSizeMsg{Width: 80, Height: 12})
	wantFrame(t, "connecting-80x12", m)
	refused := errors.New("unavailable: dial tcp 127.0.0.1:9470: connect: connection refused")
	m = send(t, m, lostMsg{err: refused, at: began, again: began.Add(time.Second)})
	wantFrame(t, "refused-80x12", m)
	m = typeKeys(t, show(t, 80, 24), "2")
	m = send(t, m, lostMsg{err: refused, at: began.Add(5 * time.Second), again: began.Add(9 * time.Second)}, tickMsg(began.Add(7*time.Second)))
	wantFrame(t, "lost-80x24", m)
	m = send(t, m, answerMsg{someStats(1), began.Add(10 * time.Second)}) // another process: no rates yet
	wantFrame(t, "back-80x24", m)
}

// What else is told of a source, when it is, and when it is not.
func TestFrames_Detail(t *testing.T) {
	m := NewModel(Options{Server: "s", Detail: func(string, uint32) (Detail, error) { return Detail{}, nil }}, began)
	m = send(t, m, tea.WindowSizeMsg{Width: 100, Height: 40}, answerMsg{someStats(60), began})
	m = typeKeys(t, m, "2", "enter")
	of := sourceKey{"10.0.0.7:8000", 0}
	m = send(t, m, detailMsg{of: of, detail: Detail{
		Worker: &kvscoutv1.Worker{Url: "http://10.0.0.7:8000", Spec: &kvscoutv1.WorkerSpec{Labels: map[string]string{"zone": "b", "rack": "12"}},
			Sources: []*kvscoutv1.SourceStatus{{Rank: 1, EventEndpoint: "no"}, {EventEndpoint: "tcp://10.0.0.7:5557", ReplayEndpoint: "tcp://10.0.0.7:5567"}}},
		Scopes: []*kvscoutv1.ScopeStats{{Model: "qwen3-32b", BlockSize: 16, Blocks: 12_000},
			{Model: "qwen3-32b", BlockSize: 16, Blocks: 345, Adapter: "law", Salted: true, Extra: true}},
		ScopesOmitted: 7,
	}})
	wantFrame(t, "detail-told-100x40", m)
	m = send(t, m, detailMsg{of: sourceKey{"other", 0}}) // of a source that was looked at before
	wantFrame(t, "detail-told-100x40", m)
	m = send(t, m, detailMsg{of: of, err: errors.New("permission_denied: operate is needed")})
	wantFrame(t, "detail-denied-100x40", m)
	gone := someStats(61)
	gone.Sources = gone.Sources[:1]
	wantFrame(t, "detail-gone-100x40", send(t, m, answerMsg{gone, began.Add(time.Second)}))
}

// All as plain text, for files.
func TestEverything(t *testing.T) {
	m := show(t, 80, 24)
	wantText(t, "everything-120", everything(m.opts, m.last, 120))
}
