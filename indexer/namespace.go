package indexer

import (
	"strings"

	"github.com/kvscout/kvscout/events"
)

// dynamoSaltPrefix tags a salt among extra keys in SGLang forks that follow Dynamo.
const dynamoSaltPrefix = "dynamo-cache-salt:"

// extras is what a block's extra keys say, told apart.
type extras struct {
	salt   string
	media  []uint64 // in prompt order
	opaque []byte   // what no request can reproduce
}

// readExtras tells the untagged items of one block's extra keys apart. vLLM's order is adapter name, multimodal items,
// salt (first block of the prompt only), digest of prompt embeddings (kv_cache_utils.generate_block_hash_extra_keys).
// Multimodal items are pairs in current engines. A bare string is the adapter if it is the event's adapter; otherwise
// the salt on a prompt's first block, and elsewhere an identifier of an item. legacyMedia (vLLM 0.18) makes digests
// identifiers everywhere.
func readExtras(items []events.Extra, adapter string, first, legacyMedia bool) extras {
	var out extras
	named := false
	for _, it := range items {
		switch it.Kind {
		case events.ExtraString:
			switch {
			case it.Text == adapter && !named:
				named = true
			case strings.HasPrefix(it.Text, dynamoSaltPrefix):
				out.salt = it.Text[len(dynamoSaltPrefix):]
			case !first || legacyMedia && isHexDigest(it.Text):
				out.media = append(out.media, mediaHash(it.Text))
			case out.salt != "":
				// Two candidates for the salt: neither can be trusted, so the block matches nothing.
				out.opaque = append(out.opaque, it.Text...)
			default:
				out.salt = it.Text
			}
		case events.ExtraPair:
			out.media = append(out.media, mediaHash(it.Text))
		case events.ExtraHash:
			out.media = append(out.media, uint64(it.Offset))
		case events.ExtraBytes:
			out.opaque = append(append(out.opaque, 1), it.Text...)
		default:
			out.opaque = append(append(out.opaque, 2), it.Text...)
		}
	}
	return out
}
