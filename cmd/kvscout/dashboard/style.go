package dashboard

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// tone is how a text stands out. The terminal's own 16 colours are used, so its theme decides how they look; where it has
// none the words alone tell.
type tone uint8

const (
	plain tone = iota
	faint
	strong
	good
	warn
	bad
	chosen
)

var styles = [...]lipgloss.Style{
	plain:  lipgloss.NewStyle(),
	faint:  lipgloss.NewStyle().Faint(true),
	strong: lipgloss.NewStyle().Bold(true),
	good:   lipgloss.NewStyle().Foreground(lipgloss.Green),
	warn:   lipgloss.NewStyle().Foreground(lipgloss.Yellow),
	bad:    lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true),
	chosen: lipgloss.NewStyle().Reverse(true),
}

// in styles a text of one line.
func (t tone) in(text string) string {
	if t == plain || text == "" {
		return text
	}
	return styles[t].Render(text)
}

// stateTone is the tone of a state's word.
func stateTone(s kvscoutv1.FreshnessState) tone {
	switch s {
	case kvscoutv1.FreshnessState_FRESHNESS_STATE_LIVE:
		return good
	case kvscoutv1.FreshnessState_FRESHNESS_STATE_GAP, kvscoutv1.FreshnessState_FRESHNESS_STATE_STALE:
		return bad
	default:
		return warn
	}
}

// width is how many cells a text takes.
func width(s string) int { return ansi.StringWidth(s) }

// fit makes a text exactly w cells wide, at the left or the right of them.
func fit(s string, w int, right bool) string {
	n := width(s)
	if n > w {
		s = ansi.Truncate(s, w, "…")
		n = width(s)
	}
	space := strings.Repeat(" ", max(0, w-n))
	if right {
		return space + s
	}
	return s + space
}

// ends cuts the middle out of a text of more than w cells: ids often differ in their ends only.
func ends(s string, w int) string {
	n := width(s)
	if n <= w || w < 5 {
		return s
	}
	head := ansi.Truncate(s, (w-1)/2, "")
	return head + ansi.TruncateLeft(s, n-(w-1-width(head)), "…")
}

// wrap breaks a text into lines of at most w cells, at spaces where it can.
func wrap(s string, w int) []string {
	return strings.Split(ansi.Wrap(s, max(1, w), ""), "\n")
}
