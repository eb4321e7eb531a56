package scorerpc

import (
	"sync"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer/indexrpc"
)

// maxKeptRows bounds the sheets that are kept.
const maxKeptRows = 4096

// sheet is the memory of an answer and its entries.
type sheet struct {
	answer kvscoutv1.ScoreResponse
	rows   []row
	list   []*kvscoutv1.WorkerScore
}

var sheets = sync.Pool{New: func() any { return new(sheet) }}

// make makes n empty rows.
func (s *sheet) make(n int) {
	if cap(s.rows) < n {
		s.rows, s.list = make([]row, n), make([]*kvscoutv1.WorkerScore, n)
	}
	s.rows, s.list = s.rows[:n], s.list[:n]
}

// Release gives the memory back. The answer must not be used any more.
func (s *sheet) Release() {
	s.answer.Reset()
	clear(s.rows) // none keeps what its answer pointed to
	clear(s.list)
	if cap(s.rows) <= maxKeptRows {
		sheets.Put(s)
	}
}

// row is the memory of one entry.
type row struct {
	score    kvscoutv1.WorkerScore
	fresh    indexrpc.FreshnessRow
	bound    kvscoutv1.Bound
	reasons  [1]kvscoutv1.BoundReason
	tiers    [1]*kvscoutv1.TierTokens
	tier     kvscoutv1.TierTokens
	tierUsed bool
}

// newTier is an empty entry of the row's tiers.
func (w *row) newTier() *kvscoutv1.TierTokens {
	if w.tierUsed {
		return new(kvscoutv1.TierTokens)
	}
	w.tierUsed = true
	return &w.tier
}
