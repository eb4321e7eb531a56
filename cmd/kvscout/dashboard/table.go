package dashboard

import (
	"cmp"
	"slices"
	"strings"
)

// table is a sorted and filtered list of sources with one of them chosen. Its rows are those of the sample shown last.
type table struct {
	columns []column
	sort    int // column
	turned  bool
	rows    []*source
	at      sourceKey // of the chosen row, which is followed wherever sorting puts it
	cursor  int
	top     int // first row shown
}

// fill takes the sources of a sample that want takes, sorted. The chosen source stays chosen if it is still there.
func (t *table) fill(s *sample, want func(*source) bool) {
	rows := make([]*source, 0, len(s.sources))
	for i := range s.sources {
		if want(&s.sources[i]) {
			rows = append(rows, &s.sources[i])
		}
	}
	c := t.columns[t.sort]
	sign := 1
	if c.down != t.turned {
		sign = -1
	}
	slices.SortStableFunc(rows, func(a, b *source) int {
		return cmp.Or(sign*c.order(a, b), strings.Compare(a.worker, b.worker), cmp.Compare(a.rank, b.rank))
	})
	t.rows = rows
	if i := slices.IndexFunc(rows, func(s *source) bool { return s.sourceKey == t.at }); i >= 0 && t.cursor > 0 {
		t.cursor = i
	}
	t.move(0)
}

// move moves the choice by n rows.
func (t *table) move(n int) {
	t.cursor = max(0, min(len(t.rows)-1, t.cursor+n))
	if len(t.rows) > 0 {
		t.at = t.rows[t.cursor].sourceKey
	}
}

// see scrolls so that the chosen row is among height rows.
func (t *table) see(height int) {
	t.top = max(0, min(t.top, len(t.rows)-height))
	switch {
	case t.cursor < t.top:
		t.top = t.cursor
	case t.cursor >= t.top+height:
		t.top = t.cursor - height + 1
	}
}

// sortBy goes n columns to the right.
func (t *table) sortBy(n int) {
	t.sort = (t.sort + n + len(t.columns)) % len(t.columns)
	t.turned = false
}

// selected is nil in an empty table.
func (t *table) selected() *source {
	if t.cursor >= len(t.rows) {
		return nil
	}
	return t.rows[t.cursor]
}

const (
	gap     = 1  // cells between columns
	marking = 2  // cells before each row, for the mark of the chosen one
	maxID   = 64 // cells that a worker's id gets at most, and a third of the screen before other columns get theirs
)

// placed is a column with its width on this screen.
type placed struct {
	*column
	width  int
	sorted bool
}

// place chooses the columns that fit into w cells: those with the lowest rank, and the one that is sorted by.
func (t *table) place(w, idWidth int) []placed {
	byRank := make([]int, len(t.columns))
	for i := range byRank {
		byRank[i] = i
	}
	slices.SortStableFunc(byRank, func(a, b int) int {
		return cmp.Or(-cmpBool(a == t.sort, b == t.sort), cmp.Compare(t.columns[a].rank, t.columns[b].rank))
	})
	left := w - marking
	idWidth = max(idWidth, width("WORKER")+1)
	first := min(idWidth, w/3)
	var in []int
	for _, i := range byRank {
		need := t.columns[i].width + gap
		if t.columns[i].width == 0 {
			need = first + gap
		}
		if need > left && t.columns[i].rank > 0 && i != t.sort {
			break
		}
		left -= need
		in = append(in, i)
	}
	slices.Sort(in)
	var out []placed
	for _, i := range in {
		p := placed{column: &t.columns[i], width: t.columns[i].width, sorted: i == t.sort}
		if p.width == 0 {
			p.width = first + max(0, min(left, min(idWidth, maxID)-first))
		}
		out = append(out, p)
	}
	return out
}

func cmpBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// lines are the header and height-1 rows, each at most w cells wide.
func (t *table) lines(w, height, idWidth int) []string {
	cols := t.place(w, idWidth)
	var head strings.Builder
	head.WriteString(strings.Repeat(" ", marking))
	for _, c := range cols {
		title := c.name
		if c.sorted {
			title = sortMark(c.down != t.turned) + fit(title, min(width(title), c.width-1), false)
		}
		head.WriteString(fit(title, c.width, c.right) + strings.Repeat(" ", gap))
	}
	out := []string{strong.in(fit(head.String(), w, false))}
	for i := t.top; i < len(t.rows) && len(out) < height; i++ {
		out = append(out, rowLine(cols, t.rows[i], i == t.cursor, w))
	}
	return out
}

func sortMark(down bool) string {
	if down {
		return "▼"
	}
	return "▲"
}

func rowLine(cols []placed, s *source, chosenRow bool, w int) string {
	var b strings.Builder
	b.WriteString(map[bool]string{true: "> ", false: "  "}[chosenRow])
	for _, c := range cols {
		cell := c.cell(s)
		if c.column.width == 0 {
			cell = ends(cell, c.width)
		}
		cell = fit(cell, c.width, c.right)
		if c.tone != nil && !chosenRow {
			cell = c.tone(s).in(cell)
		}
		b.WriteString(cell + strings.Repeat(" ", gap))
	}
	line := fit(b.String(), w, false)
	if chosenRow {
		return chosen.in(line)
	}
	return line
}
