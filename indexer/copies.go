package indexer

import "slices"

// copyRun is how many copies beyond the first a source has of blocks from..to-1 of a chain.
type copyRun struct {
	from, to uint16
	n        uint32
}

// copyLocked counts n more copies of blocks from..to-1 of a chain, each a simple block of the source in one tier.
func (l *Ledger) copyLocked(id uint32, from, to int, n uint32) {
	if l.more == nil {
		l.more = make(map[uint32][]copyRun)
	}
	l.more[id] = withCopies(l.more[id], uint16(from), uint16(to), n)
}

// withCopies is a list of runs, ascending and apart, with n copies more of from..to-1.
func withCopies(list []copyRun, from, to uint16, n uint32) []copyRun {
	out := make([]copyRun, 0, len(list)+2)
	add := func(r copyRun) {
		if r.from >= r.to || r.n == 0 {
			return
		}
		if k := len(out); k > 0 && out[k-1].to == r.from && out[k-1].n == r.n {
			out[k-1].to = r.to
			return
		}
		out = append(out, r)
	}
	at := from // how far from..to-1 is done
	for _, r := range list {
		add(copyRun{r.from, min(r.to, from), r.n})
		if r.to > at && r.from < to {
			add(copyRun{at, max(at, min(r.from, to)), n})
			at = max(at, r.from)
			add(copyRun{at, min(r.to, to), r.n + n})
			at = min(r.to, to)
		}
		if r.from >= to && at < to {
			add(copyRun{at, to, n})
			at = to
		}
		add(copyRun{max(r.from, to), r.to, r.n})
	}
	add(copyRun{at, to, n})
	return slices.Clip(out)
}

// copiesLocked is how many copies beyond the first the source has of a simple block.
func (l *Ledger) copiesLocked(p place) uint32 {
	id, end := p.split()
	for _, r := range l.more[id] {
		if int(r.from) < end && end <= int(r.to) {
			return r.n
		}
	}
	return 0
}

// takeCopyLocked takes one copy of a simple block away; false when there is only the first.
func (l *Ledger) takeCopyLocked(p place) bool {
	if len(l.more) == 0 {
		return false
	}
	id, end := p.split()
	list, pos := l.more[id], uint16(end-1)
	for i, r := range list {
		if pos < r.from || pos >= r.to {
			continue
		}
		rest := slices.Concat(list[:i], []copyRun{{r.from, pos, r.n}, {pos, pos + 1, r.n - 1}, {pos + 1, r.to, r.n}}, list[i+1:])
		rest = slices.DeleteFunc(rest, func(r copyRun) bool { return r.from >= r.to || r.n == 0 })
		if len(rest) == 0 {
			delete(l.more, id)
		} else {
			l.more[id] = rest
		}
		return true
	}
	return false
}

// takeCopiesLocked takes all copies of a simple block away but the first, and says how many those were.
func (l *Ledger) takeCopiesLocked(p place) (n uint32) {
	for l.takeCopyLocked(p) {
		n++
	}
	return n
}
