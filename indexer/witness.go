package indexer

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/kvscout/kvscout/events"
)

// witness computes, block by block, the hash under which SGLang publishes a prompt's blocks in its "dynamo" format
// (0.5.22 and later): the only witness of a namespace that the event itself does not carry. Pages are chained by
// SHA-256 over tokens; the published value is keyed by the namespace (SGLang mem_cache/events.py).
type witness struct {
	tokens []uint32
	size   int
	pairs  bool // of tokens: the bigrams that SGLang keys by with EAGLE
	next   int
	salt   string
	digest [sha256.Size]byte
	seed   [sha256.Size]byte
	plain  bool // the common namespace: hashes are published as they are
	buf    []byte
}

const (
	sglangSaltTag      = "sglang-cache-salt-v1\x00"
	sglangNamespaceTag = "sglang-kv-event-namespace-v1"
)

// newWitness is a witness for a prompt in a namespace; adapterID is SGLang's own id of the adapter (lora_id).
func newWitness(tokens []uint32, size int, pairs bool, ns Namespace, adapterID string) *witness {
	w := &witness{tokens: tokens, size: size, pairs: pairs, salt: ns.Salt}
	w.plain = ns.Salt == "" && ns.Extra == "" && adapterID == ""
	buf := append([]byte(nil), sglangNamespaceTag...)
	buf = namespacePart(buf, ns.Extra+adapterID)
	buf = namespacePart(buf, ns.Salt)
	w.seed = sha256.Sum256(buf)
	return w
}

func namespacePart(buf []byte, s string) []byte {
	if s == "" {
		return append(buf, 0)
	}
	buf = append(buf, 1)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(len(s)))
	return append(buf, s...)
}

// step is the published hash of the next block.
func (w *witness) step() uint64 {
	w.buf = w.buf[:0]
	switch {
	case w.next > 0:
		w.buf = append(w.buf, w.digest[:]...)
	case w.salt != "":
		start := sha256.Sum256([]byte(sglangSaltTag + w.salt))
		w.buf = append(w.buf, start[:]...)
	}
	for i := w.next * w.size; i < (w.next+1)*w.size; i++ {
		w.buf = binary.LittleEndian.AppendUint32(w.buf, w.tokens[i])
		if w.pairs {
			w.buf = binary.LittleEndian.AppendUint32(w.buf, w.tokens[i+1])
		}
	}
	w.digest = sha256.Sum256(w.buf)
	w.next++
	if w.plain {
		return binary.BigEndian.Uint64(w.digest[:8])
	}
	w.buf = append(append(w.buf[:0], w.seed[:]...), w.digest[:8]...)
	sum := sha256.Sum256(w.buf)
	return binary.BigEndian.Uint64(sum[:8])
}

// witnessed says whether a source's hashes cover the whole namespace, so that a match can be checked by them.
func witnessed(s events.Source) bool {
	return s.Engine == events.EngineSGLang && s.HashFormat == events.HashFormatDynamo
}
