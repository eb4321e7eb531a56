package indexer

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/kvscout/kvscout/events"
)

// Fingerprint stands for what a saved book relies on beside the sources: how keys are made, what the bits of masks mean,
// and what is done at gaps. Never 0.
func (x *Index) Fingerprint() uint64 {
	tokens := make([]uint32, 32)
	for i := range tokens {
		tokens[i] = uint32(i * i)
	}
	features := []Feature{{Hash: "image", Offset: 3, Length: 5}}
	ns := Namespace{Salt: "salt", Adapter: "adapter", Extra: "extra"}
	var b []byte
	for _, pairs := range []bool{false, true} {
		for _, k := range Keys(tokens, features, 8, pairs, ns) {
			b = binary.LittleEndian.AppendUint64(b, uint64(k))
		}
	}
	b = append(b, maxGroups, byte(events.TierCount), map[bool]byte{true: 1}[x.opts.KeepOnGap])
	return xxhash.Sum64(b) | 1
}
