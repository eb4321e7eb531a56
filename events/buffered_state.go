package events

// maxAway bounds how many blocks off the device a Decoder remembers, and maxBufferedRanks how many ranks it tells apart.
const (
	maxAway          = 1 << 18
	maxBufferedRanks = 1024
)

// buffered is what a Decoder knows of TensorRT-LLM's buffered events beyond the payload at hand.
type buffered struct {
	json jsonReader
	// size is the configured block size, 0 without one.
	size   int
	ranks  map[int]*bufferedRank
	away   int // entries of away in all ranks
	blocks []bufferedBlock
	gone   [TierCount][]Hash // scratch of a removal
}

// bufferedRank is one attention-DP rank: a KV-cache manager with windows and hashes of its own.
type bufferedRank struct {
	witness
	// window is the largest attention window heard of: the one that keeps every block.
	window int
	// size is the block size that the events showed; sure when a block had another one behind it and so was full.
	size int
	sure bool
	// last is the number of the last event.
	last uint64
	// away has the tier of blocks that are not on the device. spilled: there were more than maxAway, and tiers tells
	// where they may be.
	away    map[residence]Tier
	spilled bool
	tiers   [TierCount]bool
}

// residence is a block in one group.
type residence struct {
	group int
	hash  Hash
}

// rankOf is the state of a rank; nil for one too many.
func (d *Decoder) rankOf(rank int) *bufferedRank {
	b := &d.buffered
	if r, ok := b.ranks[rank]; ok {
		return r
	}
	if len(b.ranks) >= maxBufferedRanks {
		return nil
	}
	if b.ranks == nil {
		b.ranks = make(map[int]*bufferedRank)
	}
	b.ranks[rank] = &bufferedRank{}
	return b.ranks[rank]
}

// restart forgets what an engine process that is gone had told.
func (d *Decoder) restart(r *bufferedRank) {
	d.buffered.away -= len(r.away)
	*r = bufferedRank{}
}

// put notes where a block lies now.
func (d *Decoder) put(r *bufferedRank, at residence, tier Tier) {
	r.tiers[tier] = true
	_, known := r.away[at]
	switch {
	case tier == TierDevice && known:
		delete(r.away, at)
		d.buffered.away--
	case tier == TierDevice:
	case known:
		r.away[at] = tier
	case d.buffered.away >= maxAway:
		r.spilled = true
	default:
		if r.away == nil {
			r.away = make(map[residence]Tier)
		}
		r.away[at] = tier
		d.buffered.away++
	}
}

// take puts the hash of a block that is gone from every tier into the scratch list of the tier it was in. Of a block
// that was not remembered it could be any tier.
func (d *Decoder) take(r *bufferedRank, at residence) {
	gone := &d.buffered.gone
	if tier, ok := r.away[at]; ok {
		delete(r.away, at)
		d.buffered.away--
		gone[tier] = append(gone[tier], at.hash)
		return
	}
	gone[TierDevice] = append(gone[TierDevice], at.hash)
	if !r.spilled {
		return
	}
	for t := TierHost; t <= TierUnknown; t++ {
		if r.tiers[t] {
			gone[t] = append(gone[t], at.hash)
		}
	}
}

// blockSize is the number of tokens in a full block, as far as it is known; counts are the lengths of a store's blocks,
// of which all but the last are full. A lone block is taken for full when it may be: sizes are powers of two.
func (b *buffered) blockSize(r *bufferedRank, blocks []bufferedBlock) int {
	first := blocks[0].tokens()
	switch {
	case len(blocks) > 1:
		r.size, r.sure = first, true
	case !r.sure && first > max(r.size, b.size) && first&(first-1) == 0:
		r.size = first
	}
	switch {
	case r.sure:
		return r.size
	case max(r.size, b.size) > 0:
		return max(r.size, b.size)
	default:
		size := 2
		for size < first {
			size *= 2
		}
		return size
	}
}
