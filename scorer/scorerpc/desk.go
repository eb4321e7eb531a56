package scorerpc

import (
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/scorer"
)

// desk is what one call works on while it rates, used again by later ones. Nothing of an answer points into it.
type desk struct {
	query   indexer.Query   // of the call
	reader  *indexer.Reader // what it finds lies in its own memory
	matches []*indexer.Match
	matched []bool // by candidate
	ranked  []scorer.Ranked
}

// leave gives a desk back.
func (s *Service) leave(d *desk) {
	d.query = indexer.Query{} // a prompt is its request's
	s.desks.Put(d)
}
