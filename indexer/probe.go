package indexer

import "github.com/kvscout/kvscout/events"

// probe is a search for a hash: the hash mixed, and the slot from which it goes on in the shards of generation gen.
type probe struct {
	x   uint64
	at  uint32
	gen uint32
}

// probes appends the probes of hashes in a space. It reads what their searches begin with, so that they wait for memory
// once and not each for itself.
func (d *dict) probes(list []probe, hashes []events.Hash, space uint32) []probe {
	sum, extra := uint32(0), spaceMix(space)
	for i := range hashes {
		x := mixBits(hashes[i].Lo ^ extra)
		s := d.shard(x)
		p := probe{x: x, at: s.start(x), gen: d.gen}
		if len(s.slots) > 0 {
			sum += s.slots[p.at]
		}
		list = append(list, p)
	}
	d.sink += sum
	return list
}

func (d *dict) probe(hash uint64, space uint32) probe {
	x := mixHash(hash, space)
	return probe{x: x, at: d.shard(x).start(x), gen: d.gen}
}

// next is the next handle of a probe's hash among those entered in its space. It is 0 if there is none left, and then the
// probe is where the hash can be entered.
func (d *dict) next(hash uint64, p *probe) handle {
	s := d.shard(p.x)
	slots := s.slots
	if len(slots) == 0 {
		return 0
	}
	low := uint32(1)<<s.bits - 1
	want := uint32(p.x) << s.bits
	for at := p.at; ; {
		e := slots[at]
		if e == 0 {
			p.at = at
			return 0
		}
		if at++; int(at) == len(slots) {
			at = 0
		}
		if e&^low != want || e <= deadSlot {
			continue
		}
		h := handle(e & low)
		if g := d.group(uint32(h >> 4)); g.hash[h&15] == hash && g.used>>(h&15)&1 != 0 {
			p.at = at
			return h
		}
	}
}
