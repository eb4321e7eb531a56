package events

// Reason says why a frame, a payload, an event or a part of one was not applied, or what else went wrong with a
// source. Its names are the fixed label set of counters: nothing from the wire ever becomes a label.
type Reason uint8

const (
	// ReasonBadFrames is a message that is not topic, sequence, payload.
	ReasonBadFrames Reason = iota
	// ReasonBadSequence is a sequence frame shorter than 8 bytes.
	ReasonBadSequence
	// ReasonBadPayload is a payload that is no event batch at all.
	ReasonBadPayload
	// ReasonTooLarge is a frame, list or string over its limit.
	ReasonTooLarge
	// ReasonBadEvent is an event whose fields have the wrong types.
	ReasonBadEvent
	// ReasonUnknownEvent is an event with a tag this version does not know.
	ReasonUnknownEvent
	// ReasonBadToken is a token id that is negative, over 32 bits, or no number.
	ReasonBadToken
	// ReasonBadPairs is a list of bigrams that do not chain.
	ReasonBadPairs
	// ReasonBadNamespace is an event whose namespace cannot be told (rule 3: never indexed as unsalted).
	ReasonBadNamespace
	// ReasonBadBlockSize is a store whose block size is not positive and that names blocks not known.
	ReasonBadBlockSize
	// ReasonNotDense is a store whose hashes do not cover its tokens, in a group that keeps every block.
	ReasonNotDense
	// ReasonPartialBlock is a store of less than one block.
	ReasonPartialBlock
	// ReasonUnknownBlock is a sparse store or tier placeholder of a block that was never announced with its tokens.
	ReasonUnknownBlock
	// ReasonUnknownRemoval is the removal of a block that is not known: joined late, or never indexed.
	ReasonUnknownRemoval
	// ReasonSelfParent is a store that names a block as its own ancestor.
	ReasonSelfParent
	// ReasonConflict is an engine hash announced again with other content (first meaning stays).
	ReasonConflict
	// ReasonBlockSizeMismatch is a store whose parent is known only under another block size.
	ReasonBlockSizeMismatch
	// ReasonAmbiguous is a removal or a parent that fits blocks of two namespaces.
	ReasonAmbiguous
	// ReasonOrphanDropped is a waiting store given up because too many wait.
	ReasonOrphanDropped
	// ReasonAdapterUnnamed is a store of an adapter known only by an engine-local number.
	ReasonAdapterUnnamed
	// ReasonUnknownTier is a store to a medium this version does not know. It is kept and never scores.
	ReasonUnknownTier
	// ReasonDuplicate is a message already applied.
	ReasonDuplicate
	// ReasonStalePublisher is a message from a connection that a newer one has replaced.
	ReasonStalePublisher
	// ReasonBadReply is a replay reply in no known layout.
	ReasonBadReply
	// ReasonTopicMismatch is a message whose topic is not the source's.
	ReasonTopicMismatch
	// ReasonRankUnknown is a batch that names a rank which no source of the worker has.
	ReasonRankUnknown
	// ReasonOverflow is a message dropped because too many wait for a replay. It becomes a hole, which is asked for.
	ReasonOverflow
	// ReasonHandshake is a connection to the engine's port that came about, and then not a handshake, or not in time.
	ReasonHandshake
	// ReasonCount is the number of reasons.
	ReasonCount
)

var reasonNames = [ReasonCount]string{
	"bad_frames", "bad_sequence", "bad_payload", "too_large", "bad_event", "unknown_event", "bad_token", "bad_pairs",
	"bad_namespace", "bad_block_size", "not_dense", "partial_block", "unknown_block", "unknown_removal", "self_parent",
	"conflict", "block_size_mismatch", "ambiguous", "orphan_dropped", "adapter_unnamed", "unknown_tier", "duplicate",
	"stale_publisher", "bad_reply", "topic_mismatch", "rank_unknown", "overflow", "handshake",
}

func (r Reason) String() string {
	if r < ReasonCount {
		return reasonNames[r]
	}
	return "unknown"
}
