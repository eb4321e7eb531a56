package indexrpc

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/ingest"
)

// MaxFeatures bounds the multimodal items of one prompt.
const MaxFeatures = 4096

// Prompt is the part of a message that names a prompt in its namespace: ScoreRequest and PromptTarget have it.
type Prompt interface {
	GetTokens() *kvscoutv1.Tokens
	GetBlockHashes() *kvscoutv1.BlockHashes
	GetFeatures() []*kvscoutv1.Feature
	GetCacheSalt() string
	GetAdapter() string
	GetExtraKey() string
}

// NamespaceOf is the namespace that the message states.
func NamespaceOf(p Prompt) indexer.Namespace {
	return indexer.Namespace{Salt: p.GetCacheSalt(), Adapter: p.GetAdapter(), Extra: p.GetExtraKey()}
}

// ReadPrompt reads a prompt of tokens or block hashes of at most maxTokens tokens. Model is left to Resolve. The query may
// share the message's memory. It errs with an *Error.
func ReadPrompt(p Prompt, maxTokens int) (indexer.Query, error) {
	q := indexer.Query{Namespace: NamespaceOf(p)}
	tokens, hashes := p.GetTokens(), p.GetBlockHashes()
	var err error
	switch {
	case tokens != nil && hashes != nil:
		return q, Failf(ReasonTwoPrompts, "both tokens and block_hashes are set")
	case tokens != nil:
		if q.Tokens, err = readTokens(tokens, maxTokens); err != nil {
			return q, err
		}
		q.Features, err = readFeatures(p.GetFeatures(), len(q.Tokens))
		return q, err
	case hashes == nil:
		return q, Failf(ReasonNoPrompt, "no prompt is set")
	case len(p.GetFeatures()) > 0:
		return q, Failf(ReasonBadFeature, "%d features without tokens", len(p.GetFeatures()))
	default:
		return q, readHashes(&q, hashes, maxTokens)
	}
}

// CheckLength errs with PROMPT_TOO_LONG for a prompt of more than maxTokens tokens.
func CheckLength(tokens, maxTokens int) error {
	if tokens > maxTokens {
		return Failf(ReasonPromptTooLong, "prompt of %d tokens, limit %d", tokens, maxTokens)
	}
	return nil
}

func readTokens(t *kvscoutv1.Tokens, maxTokens int) ([]uint32, error) {
	packed, ids := t.GetPacked(), t.GetIds()
	switch {
	case len(packed) > 0 && len(ids) > 0:
		return nil, Failf(ReasonTwoPrompts, "both packed and ids are set")
	case len(packed) > 0:
		return readPacked(packed, maxTokens)
	case len(ids) > 0:
		return readIDs(ids, maxTokens)
	default:
		return nil, Failf(ReasonNoPrompt, "tokens has neither packed nor ids")
	}
}

func readPacked(packed []byte, maxTokens int) ([]uint32, error) {
	if len(packed)%4 != 0 {
		return nil, Failf(ReasonTokensNotMultipleOf4, "packed has %d bytes, want a multiple of 4", len(packed))
	}
	if err := CheckLength(len(packed)/4, maxTokens); err != nil {
		return nil, err
	}
	out := words(packed)
	if anyNegative(packed) {
		i := slices.IndexFunc(out, func(t uint32) bool { return t > math.MaxInt32 })
		return nil, Failf(ReasonNegativeToken, "token at position %d is negative", i)
	}
	return out, nil
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// words is packed as the little-endian words that it holds: the same memory where the machine reads it so, else a copy.
func words(packed []byte) []uint32 {
	at := unsafe.Pointer(unsafe.SliceData(packed))
	if littleEndian && uintptr(at)%4 == 0 {
		return unsafe.Slice((*uint32)(at), len(packed)/4)
	}
	out := make([]uint32, len(packed)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(packed[4*i:])
	}
	return out
}

// anyNegative says whether any packed token is over 2^31-1. It looks at two tokens at a time.
func anyNegative(packed []byte) bool {
	var all uint64
	two := func(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
	for ; len(packed) >= 64; packed = packed[64:] {
		b := (*[64]byte)(packed)
		all |= two(b[0:]) | two(b[8:]) | two(b[16:]) | two(b[24:]) | two(b[32:]) | two(b[40:]) | two(b[48:]) | two(b[56:])
	}
	for ; len(packed) >= 4; packed = packed[4:] {
		all |= uint64(binary.LittleEndian.Uint32(packed))
	}
	return all&(1<<63|1<<31) != 0
}

func readIDs(ids []int64, maxTokens int) ([]uint32, error) {
	if err := CheckLength(len(ids), maxTokens); err != nil {
		return nil, err
	}
	out := make([]uint32, len(ids))
	for i, id := range ids {
		switch {
		case id < 0:
			return nil, Failf(ReasonNegativeToken, "token at position %d is negative", i)
		case id > math.MaxUint32:
			return nil, Failf(ReasonTokenTooLarge, "token at position %d is over 2^32-1", i)
		}
		out[i] = uint32(id)
	}
	return out, nil
}

// readFeatures reads the items of a prompt of n tokens and sorts them by offset.
func readFeatures(list []*kvscoutv1.Feature, n int) ([]indexer.Feature, error) {
	if len(list) > MaxFeatures {
		return nil, Failf(ReasonBadFeature, "%d features, limit %d", len(list), MaxFeatures)
	}
	var out []indexer.Feature
	for i, f := range list {
		// In 64 bits, because offset + length may pass 32.
		end := int64(f.GetOffset()) + int64(f.GetLength())
		switch {
		case f.GetHash() == "":
			return nil, Failf(ReasonBadFeature, "feature %d has no hash", i)
		case f.GetLength() == 0:
			return nil, Failf(ReasonBadFeature, "feature %d has no length", i)
		case end > int64(n):
			return nil, Failf(ReasonBadFeature, "feature %d ends at token %d of %d", i, end, n)
		}
		out = append(out, indexer.Feature{Hash: f.GetHash(), Offset: int(f.GetOffset()), Length: int(f.GetLength())})
	}
	slices.SortStableFunc(out, func(a, b indexer.Feature) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := 1; i < len(out); i++ {
		if out[i-1].Offset+out[i-1].Length > out[i].Offset {
			return nil, Failf(ReasonBadFeature, "features at tokens %d and %d overlap", out[i-1].Offset, out[i].Offset)
		}
	}
	return out, nil
}

func readHashes(q *indexer.Query, h *kvscoutv1.BlockHashes, maxTokens int) error {
	packed := h.GetPacked()
	blocks, size, total := int64(len(packed)/8), int64(h.GetBlockSize()), int64(h.GetPromptTokens())
	// Blocks stay below 2^31 as messages do and sizes below 2^32, so the product fits.
	covered := blocks * size
	switch {
	case len(packed)%8 != 0:
		return Failf(ReasonHashesNotMultipleOf8, "packed has %d bytes, want a multiple of 8", len(packed))
	case blocks == 0:
		return Failf(ReasonNoPrompt, "block_hashes has no hash")
	case size == 0:
		return Failf(ReasonBadBlockSize, "block size is 0")
	case total != 0 && total < covered:
		return Failf(ReasonBadPromptTokens, "prompt of %d tokens, but its blocks have %d", total, covered)
	}
	if err := CheckLength(int(max(covered, total)), maxTokens); err != nil {
		return err
	}
	q.KeySize, q.PromptTokens = int(size), int(total)
	q.Keys = keys(packed)
	return nil
}

// keys is packed as words is, of keys.
func keys(packed []byte) []indexer.Key {
	at := unsafe.Pointer(unsafe.SliceData(packed))
	if littleEndian && uintptr(at)%8 == 0 {
		return unsafe.Slice((*indexer.Key)(at), len(packed)/8)
	}
	out := make([]indexer.Key, len(packed)/8)
	for i := range out {
		out[i] = indexer.Key(binary.LittleEndian.Uint64(packed[8*i:]))
	}
	return out
}

// Resolve finds the model that name means and puts it into q, with the adapter if name is that of one and q names none.
// A salted prompt for a model whose engines publish no salts is refused (rule 15). It errs with an *Error.
func Resolve(fleet *ingest.Fleet, name string, q *indexer.Query) error {
	if len(name) > maxText {
		return Failf(ReasonUnknownModel, "%w: a name of %d bytes", ingest.ErrUnknownModel, len(name))
	}
	model, adapter, err := fleet.Resolve(name)
	if err != nil {
		return Classify(err)
	}
	q.Model = model
	if q.Adapter == "" {
		q.Adapter = adapter
	}
	if q.Salt != "" && !fleet.SaltSupported(model) {
		return Failf(ReasonSaltNotSupported, "no engine of model %q publishes cache salts", model)
	}
	return nil
}
