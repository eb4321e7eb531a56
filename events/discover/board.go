package discover

import (
	"cmp"
	"slices"
)

// board keeps what discoverers say. It belongs to one goroutine.
type board struct {
	says [][]Worker // by discoverer, those first go first
}

// merged is every worker that any discoverer names, by id (invariant 2).
func (b *board) merged() []Worker {
	at := make(map[string]int)
	var out []Worker
	for _, said := range b.says {
		for _, w := range said {
			i, known := at[w.ID]
			if !known {
				at[w.ID] = len(out)
				out = append(out, w)
				continue
			}
			out[i] = out[i].fill(w)
		}
	}
	slices.SortFunc(out, func(a, b Worker) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
