package indexer

import (
	"errors"
	"fmt"

	"github.com/kvscout/kvscout/events"
)

// ErrBook is a saved book that cannot be one that a ledger kept.
var ErrBook = errors.New("bad book")

// Saved is what one stream leaves behind so that another process may go on: what its sources hold, and as of which batch.
// It may be used again for another Export.
type Saved struct {
	Source events.Source
	// Cursor is behind the last batch that the books have.
	Cursor events.Cursor
	// Partial: a rank that is heard of later may have been heard of before.
	Partial bool
	// Buffered is what has to be known of each rank to read TensorRT-LLM's buffered events to come, ascending; empty for
	// others.
	Buffered []events.BufferedRank
	// Note is what who saves wants to keep beside the stream; Export leaves it empty.
	Note []byte
	// Books has the stream's own rank first, then those that its batches named, ascending.
	Books []Book

	copier copier
}

// Book is a ledger in a form that says nothing of how it is kept: the prompts' blocks as a tree of keys, and what is held
// at them under which engine hash.
type Book struct {
	BookMeta
	// Scopes are those in which something is held. Their salts are secrets.
	Scopes []Scope
	// Keys are the blocks, each after the one that it follows. Runs say which that is.
	Keys []Key
	Runs []KeyRun
	// Held says which blocks are held and where, ascending: a run begins no earlier than where the one before ends. Hashes
	// has an entry for each, in that order; a block under several hashes has several.
	Held   []HeldRun
	Hashes []events.Hash
	// Copies counts those that are more than one, by ascending position in Hashes.
	Copies []Copies
}

// KeyRun is a run of Keys, each following the one before. Runs lie behind each other.
type KeyRun struct {
	// Parent is the position in Keys of the block that the first follows; ^i if the first begins prompts of scope i.
	Parent int
	// Blocks is at least 1.
	Blocks int
}

// HeldRun is a run of blocks that are held in the same way.
type HeldRun struct {
	// First is a position in Keys, Blocks at least 1.
	First, Blocks int
	// Mask has bit group x events.TierCount + tier for each place of a copy. It is never 0.
	Mask uint64
}

// Copies counts copies of one block in one place.
type Copies struct {
	// Hash is a position in Hashes, Bit one of its mask's, N above 1.
	Hash int
	Bit  uint8
	N    uint32
}

// BookMeta is the part of a book that is small.
type BookMeta struct {
	Rank int `json:"rank"`
	// Sequence and Heard (Unix nanoseconds) are of the last batch of this rank.
	Sequence uint64 `json:"sequence"`
	Heard    int64  `json:"heard"`
	// Groups in the order of their bits.
	Groups []BookGroup `json:"groups,omitempty"`
	// Doubts are names of a Doubt.
	Doubts []string `json:"doubts,omitempty"`
	// Offloads: blocks lie, or lay since the last reset, on slower tiers; Outlived: some may have at the last clear.
	Offloads bool `json:"offloads,omitempty"`
	Outlived bool `json:"outlived,omitempty"`
	// Waiting counts the stores that waited for their parent. They are left out, since they consist of prompts, and are
	// given up by who restores the book.
	Waiting  int          `json:"waiting,omitempty"`
	Counters BookCounters `json:"counters"`
}

// BookGroup is a KV-cache group as its stores described it.
type BookGroup struct {
	ID     int             `json:"id"` // -1: not numbered
	Spec   events.SpecKind `json:"spec"`
	Window int             `json:"window,omitempty"`
	Sizes  []int           `json:"sizes"`
}

// BookCounters are the counts of SourceStats.
type BookCounters struct {
	Batches        uint64            `json:"batches"`
	Events         []uint64          `json:"events"` // by events.Kind
	Rejected       map[string]uint64 `json:"rejected,omitempty"`
	ReuseReports   uint64            `json:"reuse_reports,omitempty"`
	Replayed       uint64            `json:"replayed,omitempty"`
	Bytes          uint64            `json:"bytes,omitempty"`
	Connections    uint64            `json:"connections,omitempty"`
	Gaps           uint64            `json:"gaps,omitempty"`
	Resets         uint64            `json:"resets,omitempty"`
	Lost           uint64            `json:"lost,omitempty"`
	OrphansDropped int64             `json:"orphans_dropped,omitempty"`
	Evicted        uint64            `json:"evicted,omitempty"`
}

// MaxBooks is the most books that one stream can have.
const MaxBooks = 1 + maxWireRanks

// maxBlockSize is the largest block that a book may speak of, in tokens: more than any engine has.
const maxBlockSize = 1 << 24

// Check looks for what no ledger would have written, so that Restore can rely on the rest. It errs with ErrBook.
func (b *Book) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrBook}, args...)...)
	}
	for i, s := range b.Scopes {
		if s.BlockSize <= 0 || s.BlockSize > maxBlockSize {
			return bad("block size %d of scope %d", s.BlockSize, i)
		}
	}
	if len(b.Groups) > maxGroups {
		return bad("%d groups", len(b.Groups))
	}
	for _, g := range b.Groups {
		if g.Window < 0 || g.Spec > events.SpecUnknown {
			return bad("group %+v", g)
		}
		for _, n := range g.Sizes {
			if n <= 0 || n > maxBlockSize {
				return bad("block size %d of group %d", n, g.ID)
			}
		}
	}
	if err := doubtsErr(b.Doubts); err != nil {
		return err
	}
	if b.Waiting < 0 || len(b.Counters.Events) > int(events.TierCleared)+1 {
		return bad("%d stores wait, %d kinds of events", b.Waiting, len(b.Counters.Events))
	}
	at := 0
	for _, r := range b.Runs {
		if r.Blocks <= 0 || r.Blocks > len(b.Keys)-at || r.Parent >= at || ^r.Parent >= len(b.Scopes) {
			return bad("%d blocks at %d follow %d", r.Blocks, at, r.Parent)
		}
		at += r.Blocks
	}
	if at != len(b.Keys) {
		return bad("%d keys, runs have %d", len(b.Keys), at)
	}
	return b.checkHeld(bad)
}

func (b *Book) checkHeld(bad func(string, ...any) error) error {
	hashes, least := 0, 0
	for _, r := range b.Held {
		if r.Blocks <= 0 || r.First < least || r.First > len(b.Keys) || r.Blocks > len(b.Keys)-r.First ||
			r.Blocks > len(b.Hashes)-hashes || r.Mask == 0 || r.Mask>>(len(b.Groups)*events.TierCount) != 0 {
			return bad("%d blocks held from %d on as %#x", r.Blocks, r.First, r.Mask)
		}
		least = r.First + r.Blocks - 1
		hashes += r.Blocks
	}
	if hashes != len(b.Hashes) {
		return bad("%d hashes, %d blocks held", len(b.Hashes), hashes)
	}
	last := -1
	for _, c := range b.Copies {
		if c.Hash < last || c.Hash >= len(b.Hashes) || c.N < 2 || int(c.Bit) >= maxGroups*events.TierCount {
			return bad("%d copies of block %d", c.N, c.Hash)
		}
		last = c.Hash
	}
	return nil
}

func doubtsErr(names []string) error {
	_, err := parseDoubts(names)
	return err
}

// parseDoubts is the inverse of Bound.Reasons. It errs with ErrBook.
func parseDoubts(names []string) (out Doubt, err error) {
	for _, n := range names {
		d := Doubt(1)
		for d < doubtEnd && doubtNames[d] != n {
			d <<= 1
		}
		if d == doubtEnd {
			return 0, fmt.Errorf("%w: doubt %q", ErrBook, n)
		}
		out |= d
	}
	return out, nil
}
