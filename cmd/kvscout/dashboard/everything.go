package dashboard

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// everything is all views one below the other, whole, without styles, w cells wide.
func everything(opts Options, s *sample, w int) string {
	m := NewModel(opts, s.at)
	m.width = max(w, minWidth)
	m.last = s
	m.show()
	lines := append([]string{m.title(), ""}, overviewLines(s, m.width)...)
	for _, part := range []struct {
		title string
		table *table
	}{{"Sources", &m.sources}, {"Accuracy", &m.accuracy}} {
		if part.table.cursor = -1; len(part.table.rows) > 0 { // none is chosen
			lines = append(lines, "", part.title)
			lines = append(lines, part.table.lines(m.width, len(part.table.rows)+1, s.idWidth)...)
		}
	}
	lines = append(lines, "", "Calls")
	lines = append(lines, callLines(s, m.width)...)
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(ansi.Strip(l), " ") + "\n")
	}
	return b.String()
}
