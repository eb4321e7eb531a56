package dashboard

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

const (
	minWidth, minHeight = 60, 12
	// title, tabs, rule above the body; hints below it
	around = 4
)

// View is the frame as the terminal gets it.
func (m Model) View() tea.View {
	if m.quitting {
		return tea.NewView("")
	}
	v := tea.NewView(m.frame())
	v.AltScreen = true
	return v
}

// frame is the text of the screen: m.height lines, none wider than m.width.
func (m *Model) frame() string {
	if m.width < minWidth || m.height < minHeight {
		return m.tooSmall()
	}
	lines := []string{m.title(), m.tabs(), m.rule()}
	body := m.body()
	if m.table() == nil {
		body = body[min(m.scroll, len(body)):]
	}
	for i := range m.bodyHeight() {
		line := ""
		if i < len(body) {
			line = fit(body[i], m.width, false)
		}
		lines = append(lines, line)
	}
	lines = append(lines, m.bottom())
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

func (m *Model) bodyHeight() int { return max(1, m.height-around) }

func (m *Model) tooSmall() string {
	lines := make([]string, max(1, m.height))
	text := fmt.Sprintf("%dx%d is too small, %dx%d is needed", m.width, m.height, minWidth, minHeight)
	lines[0] = fit(text, min(width(text), max(0, m.width)), false)
	return strings.Join(lines, "\n")
}

// title says which server is shown, and how current that is.
func (m *Model) title() string {
	left := strong.in("kvscout top") + "  "
	if m.paused {
		left += warn.in("PAUSED, "+m.age(m.shown)+" old") + "  "
	}
	left += clean(m.opts.Server)
	state, t := m.connection()
	state = fit(state, min(width(state), max(0, m.width-24)), false)
	space := m.width - width(state) - 1
	return fit(left, space, false) + " " + t.in(state)
}

// connection is in words whether answers come.
func (m *Model) connection() (string, tone) {
	switch {
	case m.lost != nil:
		again := "trying again"
		if left := m.lost.again.Sub(m.now); left > 0 {
			again = "again in " + brief(left.Round(time.Second))
		}
		if m.last == nil {
			return "NOT CONNECTED, " + again, bad
		}
		return "LOST " + m.age(m.last) + " ago, " + again, bad
	case m.last == nil:
		return "connecting", warn
	case m.now.Sub(m.last.at) > 3*m.opts.Interval+time.Second:
		return "NO ANSWER for " + m.age(m.last), bad
	default:
		return "up " + brief(m.last.uptime) + ", every " + brief(m.opts.Interval), good
	}
}

// rule is the line above the body; it says why the server is not connected.
func (m *Model) rule() string {
	if m.lost == nil {
		return faint.in(strings.Repeat("─", m.width))
	}
	why := fit(clean(m.lost.err.Error()), min(width(clean(m.lost.err.Error())), m.width-6), false)
	return faint.in("── ") + bad.in(why) + faint.in(" "+strings.Repeat("─", max(0, m.width-4-width(why))))
}

func (m *Model) age(s *sample) string {
	if s == nil {
		return "-"
	}
	return brief(max(0, m.now.Sub(s.at)).Round(time.Second))
}

// tabs names the views; the one shown is in brackets.
func (m *Model) tabs() string {
	var parts []string
	for i, name := range tabNames {
		text := fmt.Sprintf(" %d %s ", i+1, name)
		if view(i) == m.tab() {
			text = chosen.in(fmt.Sprintf("[%d %s]", i+1, name))
		}
		parts = append(parts, text)
	}
	left := strings.Join(parts, " ")
	right := ""
	if t := m.table(); t != nil && m.shown != nil {
		right = fmt.Sprintf("%d of %d", len(t.rows), len(m.shown.sources))
		if len(t.rows) > 0 {
			right = fmt.Sprintf("row %d of %d", t.cursor+1, len(t.rows))
		}
		if len(m.filter) > 0 {
			right += fmt.Sprintf(", filtered from %d", len(m.shown.sources))
		}
	}
	return fit(left, m.width-width(right)-1, false) + " " + right
}

// bottom has the filter that is typed or set, or the keys.
func (m *Model) bottom() string {
	if m.typing {
		return fit(m.input.View()+faint.in("  words, !word, state:gap, model:x; enter keeps, esc drops it"), m.width, false)
	}
	left := ""
	if len(m.filter) > 0 && m.table() != nil {
		left = warn.in("filter: "+clean(m.input.Value())) + "  "
	}
	for _, k := range hints(m.view) {
		part := strong.in(k.key) + " " + k.does + "  "
		if width(left)+width(part) > m.width+2 {
			break
		}
		left += part
	}
	return fit(left, m.width, false)
}

// body is the text of the view. Tables cut theirs to the screen.
func (m *Model) body() []string {
	switch {
	case m.view == viewHelp:
		return helpLines(m.width)
	case m.shown == nil:
		return []string{"", "  No answer yet. Numbers come with the first one."}
	}
	switch m.view {
	case viewSources:
		return m.tableLines(&m.sources, "No sources. Workers come by flags, files, Kubernetes and `kvscout workers add`.")
	case viewAccuracy:
		return m.tableLines(&m.accuracy, "No outcomes. They come by ReportOutcome, see `kvscout report --help`.")
	case viewDetail:
		return m.detailLines()
	case viewCalls:
		return callLines(m.shown, m.width)
	default:
		return overviewLines(m.shown, m.width)
	}
}

func (m *Model) tableLines(t *table, none string) []string {
	lines := t.lines(m.width, m.bodyHeight(), m.shown.idWidth)
	if len(t.rows) == 0 {
		if len(m.filter) > 0 {
			none = "Nothing passes the filter. esc drops it."
		}
		lines = append(lines, "", "  "+none)
	}
	return lines
}
