package events

// Kind says what an Event does.
type Kind uint8

const (
	// Stored announces blocks that entered a tier of the source.
	Stored Kind = iota + 1
	// Removed announces blocks that left a tier of the source.
	Removed
	// Cleared says that the source dropped everything it held, in every tier.
	Cleared
	// TierCleared says that the source dropped everything it held in one tier (vllm-project/vllm#57296).
	TierCleared
)

// Event is one cache change of one source, as the engine announced it. Which fields are set depends on Kind.
type Event struct {
	Kind Kind

	// Hashes are the engine's ids of the blocks, in prompt order (Stored, Removed). May be empty.
	Hashes []Hash
	// Parent is the engine's id of the block before Hashes[0] or, in a sparse store, before Tokens[0].
	// It means something only when HasParent is set: the zero Hash is a legal id.
	Parent    Hash
	HasParent bool

	// Tokens are the token ids of the announced range. With Pairs set the engine keyed by bigrams (SGLang with
	// EAGLE): n announced pairs arrive here as the n+1 tokens that they chain.
	Tokens []uint32
	Pairs  bool
	// BlockSize is the number of tokens (or pairs) in one block as announced; 0 or less on tier placeholders.
	BlockSize int

	// Tier is the tier that Medium names; TierDevice when the engine names none.
	Tier Tier
	// Remote marks a copy that is not the worker's own (vLLM locality REMOTE, vllm-project/vllm#48281).
	Remote bool

	// LoraName and LoraID name the adapter; HasLoraID tells 0 from absent.
	LoraName  string
	LoraID    int64
	HasLoraID bool
	// Salt is a cache salt announced on the event itself (SGLang). vLLM puts it in Extras of the first block.
	Salt string
	// Extras holds, for each block, what the engine mixed into its hash beside the tokens (vLLM extra_keys).
	// Nil when the event carries none; otherwise entry i belongs to Hashes[i] and may be nil.
	Extras [][]Extra

	// Group is the index of the KV-cache group of a hybrid model; HasGroup tells 0 from absent.
	Group    int
	HasGroup bool
	// Spec is the kind of the group's cache, SpecUnset when not announced. Window is its sliding window in tokens,
	// 0 when not announced.
	Spec   SpecKind
	Window int
}

// Extra is one item of a block's extra keys.
type Extra struct {
	Kind ExtraKind
	// Text is the string of ExtraString, the identifier of ExtraPair, the raw bytes of ExtraBytes.
	Text string
	// Offset is, for ExtraPair, where the item begins, in tokens after the block's first (negative when it began in
	// an earlier block); for ExtraHash, the 64-bit content hash.
	Offset int64
}

// ExtraKind tells the forms of extra-key items apart. Strings are untagged on the wire: only the reader of the whole
// event can tell an adapter name, a salt and an image id apart.
type ExtraKind uint8

const (
	// ExtraString is a bare string: adapter name, salt, or multimodal identifier of older engines.
	ExtraString ExtraKind = iota + 1
	// ExtraPair is a multimodal identifier with its offset.
	ExtraPair
	// ExtraBytes is a byte string, such as the digest of prompt embeddings.
	ExtraBytes
	// ExtraHash is a 64-bit multimodal content hash (Dynamo's block_mm_infos).
	ExtraHash
	// ExtraOther is an item of another type. It cannot be reproduced for a request, so its block matches none.
	ExtraOther
)

// SpecKind is the kind of cache a group keeps (vLLM kv_cache_spec_kind).
type SpecKind uint8

const (
	SpecUnset SpecKind = iota
	SpecFull
	SpecMLA
	SpecSinkFull
	SpecSlidingWindow
	SpecSlidingWindowMLA
	SpecMamba
	SpecChunkedLocal
	SpecEncoderOnly
	SpecCross
	// SpecUnknown is a kind this version does not know.
	SpecUnknown
)

var specNames = map[string]SpecKind{
	"full_attention":          SpecFull,
	"mla_attention":           SpecMLA,
	"sink_full_attention":     SpecSinkFull,
	"sliding_window":          SpecSlidingWindow,
	"sliding_window_mla":      SpecSlidingWindowMLA,
	"mamba":                   SpecMamba,
	"chunked_local_attention": SpecChunkedLocal,
	"encoder_only_attention":  SpecEncoderOnly,
	"cross_attention":         SpecCross,
}

// ParseSpecKind names the kind that the wire calls s: SpecUnset for "", SpecUnknown for a name this version lacks.
func ParseSpecKind(s string) SpecKind {
	if s == "" {
		return SpecUnset
	}
	if k, ok := specNames[s]; ok {
		return k
	}
	return SpecUnknown
}

// String is the wire's name of the kind: "" where none was told, "unknown" for one that this version lacks.
func (k SpecKind) String() string {
	if k == SpecUnknown {
		return "unknown"
	}
	for name, kind := range specNames {
		if kind == k {
			return name
		}
	}
	return ""
}

// Dense says whether a group of this kind keeps every block of a prompt.
func (k SpecKind) Dense() bool {
	switch k {
	case SpecUnset, SpecFull, SpecMLA, SpecSinkFull:
		return true
	default:
		return false
	}
}

// Batch is one decoded payload: what one engine step changed.
type Batch struct {
	// Time is when the engine drained its events, in Unix seconds; 0 when the payload had none that could be read.
	Time float64
	// Rank is the data-parallel rank on the wire; HasRank is false when the payload names none.
	Rank    int
	HasRank bool
	Events  []Event
	// Rejects has one entry for each event of the payload that was not understood. The others apply (rule 10).
	Rejects []Reason
}
