package indexer

// place names one block of one prompt of one scope: its key and everything before it. Places mean something only to
// the tree that made them, and only while someone has a reference to them.
type place uint64

// slot names one source inside an index. Slots are never used again.
type slot uint32

// tree is the seam between a stripe and the structure that holds it: who holds which block. Writers are serialised by
// the stripe; collect may run beside them and waits for nobody (rule 16).
type tree interface {
	// root makes the place above the first blocks of a scope and takes a reference to it. origin is what readers know it
	// by, and is never used twice.
	root(s *scope) (p place, origin uint64)
	// child is the place of the block with this key after parent, made if new, and takes a reference to it.
	child(parent place, key Key) place
	// up is the place that child made p after, the key it was made with, and whether that place is a root.
	up(p place) (parent place, key Key, root bool)
	// release gives one reference back. A place with neither references nor children is gone, at settle at the latest.
	release(p place)
	// hold changes what a source holds at p under one hash, of which via is the 64-bit form, from was to now.
	hold(p place, l *Ledger, via uint64, was, now mask)
	// settle ends a batch of changes.
	settle()
	// collect adds to r what sources hold of the prompt that r asks, in one scope. It errs with r's context.
	collect(r *Reader, origin uint64, keys *keyer) error
	// rows are what was collected for l, one row for each scope.
	rows(r *Reader, l *Ledger, t *table) []*row
	// close takes back what belonged to a source that holds nothing and is closed.
	close(l *Ledger)
	// size counts the places that exist, roots left out.
	size() int
	// bytes is the memory of the structure, 0 when it does not count it.
	bytes() int
}
