package events

import (
	"errors"
	"fmt"
	"math"
)

// BufferedRank is what a Decoder knows of the buffered events of one rank so far, without which those to come cannot be
// read: all but which blocks lie off the device, which whoever applied the events knows.
type BufferedRank struct {
	Rank int `json:"rank"`
	// Last is the number of the rank's last event, Window the largest attention window heard of.
	Last   uint64 `json:"last"`
	Window int    `json:"window,omitempty"`
	// Size is the block size that the events showed, 0 if none did; Sure: it is no guess.
	Size int  `json:"size,omitempty"`
	Sure bool `json:"sure,omitempty"`
	// Spilled: more blocks lay off the device than are remembered, in the tiers of Tiers.
	Spilled bool   `json:"spilled,omitempty"`
	Tiers   []Tier `json:"tiers,omitempty"`
	// Scheme is how the engine was found to make its hashes, 0 while it is not known.
	Scheme uint8 `json:"scheme,omitempty"`
}

// ErrState is a state that no Decoder leaves behind.
var ErrState = errors.New("bad decoder state")

// Buffered is what d knows of a rank, false if it has read no buffered event of it.
func (d *Decoder) Buffered(rank int) (BufferedRank, bool) {
	r, ok := d.buffered.ranks[rank]
	if !ok {
		return BufferedRank{}, false
	}
	s := BufferedRank{Rank: rank, Last: r.last, Window: r.window, Size: r.size, Sure: r.sure, Scheme: uint8(r.proved), Spilled: r.spilled}
	for t, lay := range r.tiers {
		if lay && r.spilled {
			s.Tiers = append(s.Tiers, Tier(t))
		}
	}
	return s, true
}

// ResumeBuffered makes d go on where another Decoder left a rank. Lies is to follow for each block. It errs with ErrState.
func (d *Decoder) ResumeBuffered(s BufferedRank) error {
	switch {
	case s.Rank < 0 || s.Window < 0 || s.Window > math.MaxInt32 || s.Size < 0 || s.Size > math.MaxInt32:
		return fmt.Errorf("%w: a number is out of range", ErrState)
	case s.Scheme > uint8(schemeV2Old):
		return fmt.Errorf("%w: scheme %d of hashes", ErrState, s.Scheme)
	}
	r := d.rankOf(s.Rank)
	if r == nil {
		return fmt.Errorf("%w: over %d ranks", ErrState, maxBufferedRanks)
	}
	r.last, r.window, r.size, r.sure, r.spilled, r.proved = s.Last, s.Window, s.Size, s.Sure, s.Spilled, scheme(s.Scheme)
	for _, t := range s.Tiers {
		if int(t) >= TierCount {
			return fmt.Errorf("%w: tier %d", ErrState, t)
		}
		r.tiers[t] = true
	}
	return nil
}

// Lies says of a block of a resumed rank where it is, in the group that its events named, 0 for none.
func (d *Decoder) Lies(rank, group int, hash Hash, tier Tier) {
	if r, ok := d.buffered.ranks[rank]; ok {
		d.put(r, residence{group, hash}, tier)
	}
}

// Resume makes o go on behind the place where an event stood; last has the number of each rank's last event.
func (o *BufferedOrder) Resume(place uint64, last []BufferedRank) {
	o.next, o.last = place+1, make(map[int]uint64)
	for _, r := range last {
		o.last[r.Rank] = r.Last
	}
}
