package events

import "math"

// bufferedBlock is one block of a store, whose hash and tokens lie in the Decoder's lists.
type bufferedBlock struct {
	hash       Hash
	first, end int // of its tokens
	tier       Tier
	salt       string
	lora       int64
	hasLora    bool
	extras     []Extra
}

func (b *bufferedBlock) tokens() int { return b.end - b.first }

// joins says whether o, which follows b in a store, may stand in one Event with it.
func (b *bufferedBlock) joins(o *bufferedBlock) bool {
	return b.tier == o.tier && b.salt == o.salt && b.lora == o.lora && b.hasLora == o.hasLora && b.tokens() == o.tokens()
}

// bufferedStore reads a chain of blocks. Each run of full blocks in one tier becomes an Event, and so does a last block
// that is not full, which the index counts and leaves out.
func (d *Decoder) bufferedStore(b *Batch, rank *bufferedRank, h *bufferedHead) error {
	var parent Hash
	hasParent, seen := false, false
	d.buffered.blocks = reuse(d.buffered.blocks, keepHashes)
	firstHash := len(d.hashes)
	err := d.members(func(key []byte) (err error) {
		r := &d.buffered.json
		switch string(key) {
		case "parent_hash":
			if r.null() {
				return nil
			}
			hasParent = true
			parent, err = d.bufferedHash()
			return err
		case "blocks":
			if seen {
				return fault(ReasonBadEvent)
			}
			seen = true
			return d.elements(d.bufferedBlock)
		default:
			return r.skip()
		}
	})
	switch {
	case err != nil:
		return err
	case !seen:
		return fault(ReasonBadEvent)
	case len(d.buffered.blocks) == 0:
		return nil
	}
	return d.bufferedRuns(b, rank, h, parent, hasParent, firstHash)
}

// bufferedRuns makes the Events of a chain whose blocks were read, and whose hashes begin at firstHash.
func (d *Decoder) bufferedRuns(b *Batch, rank *bufferedRank, h *bufferedHead, parent Hash, hasParent bool, firstHash int) error {
	blocks := d.buffered.blocks
	size := d.buffered.blockSize(rank, blocks)
	if root := &blocks[0]; !hasParent && root.tokens() == size && root.extras == nil && root.salt == "" &&
		rank.hides(d.tokens[root.first:root.end], root.hash) {
		if err := d.opaque(root); err != nil {
			return err
		}
	}
	for i := 0; i < len(blocks); {
		n := 1
		for i+n < len(blocks) && blocks[i].joins(&blocks[i+n]) {
			n++
		}
		if len(b.Events) >= d.limits.Events {
			return fault(ReasonTooLarge)
		}
		e := h.event(Stored, rank, blocks[i].tier)
		e.Parent, e.HasParent, e.BlockSize = parent, hasParent, size
		d.fill(&e, blocks[i:i+n], firstHash+i)
		for _, o := range blocks[i : i+n] {
			d.put(rank, residence{h.group, o.hash}, o.tier)
		}
		b.Events = append(b.Events, e)
		i += n
		parent, hasParent = blocks[i-1].hash, true
	}
	return nil
}

// fill gives e a run of blocks, whose hashes begin at first in the Decoder's list.
func (d *Decoder) fill(e *Event, run []bufferedBlock, first int) {
	e.Hashes = d.hashes[first : first+len(run) : first+len(run)]
	end := run[len(run)-1].end
	e.Tokens = d.tokens[run[0].first:end:end]
	e.Salt, e.LoraID, e.HasLoraID = run[0].salt, run[0].lora, run[0].hasLora
	start, named := len(d.rows), false
	for i := range run {
		named = named || run[i].extras != nil
		d.rows = append(d.rows, run[i].extras)
	}
	if !named {
		d.rows = d.rows[:start]
		return
	}
	e.Extras = d.rows[start:len(d.rows):len(d.rows)]
}

// opaque marks a block as one that no request can name.
func (d *Decoder) opaque(b *bufferedBlock) error {
	start := len(d.extras)
	for _, x := range b.extras {
		if err := d.addExtra(x); err != nil {
			return err
		}
	}
	if err := d.addExtra(Extra{Kind: ExtraOther}); err != nil {
		return err
	}
	b.extras = d.extrasFrom(start)
	return nil
}

// bufferedBlock reads one stored_block.
func (d *Decoder) bufferedBlock() error {
	if len(d.hashes) >= d.limits.Hashes {
		return fault(ReasonTooLarge)
	}
	b := bufferedBlock{first: len(d.tokens), end: len(d.tokens)}
	hashed, opaque := false, false
	err := d.members(func(key []byte) (err error) {
		r := &d.buffered.json
		switch string(key) {
		case "block_hash":
			hashed = true
			b.hash, err = d.bufferedHash()
		case "tokens":
			if b.end > b.first {
				return fault(ReasonBadEvent)
			}
			var extra bool
			extra, err = d.bufferedTokens()
			opaque = opaque || extra
			b.end = len(d.tokens)
		case "cache_level":
			var level int
			level, err = r.intIn(math.MaxInt32)
			b.tier = tierOfLevel(level)
		case "mm_keys":
			if b.extras != nil {
				return fault(ReasonBadNamespace)
			}
			b.extras, err = d.bufferedMedia()
		case "cache_salt", "cache_salt_id":
			var hidden bool
			hidden, err = d.bufferedSalt(&b)
			opaque = opaque || hidden
		case "lora_id":
			if !r.null() {
				var id int
				id, err = r.intIn(math.MaxInt64)
				b.lora, b.hasLora = int64(id), id != 0
			}
		default:
			err = r.skip()
		}
		return err
	})
	if err == nil && (!hashed || b.end == b.first) {
		err = fault(ReasonBadEvent)
	}
	if err == nil && opaque {
		err = d.opaque(&b)
	}
	if err != nil {
		return err
	}
	d.hashes = append(d.hashes, b.hash)
	d.buffered.blocks = append(d.buffered.blocks, b)
	return nil
}

// bufferedTokens reads a block's tokens: objects of token_id and token_extra_id, or bare integers. extra is true when one
// has an extra id (a prompt table of embeddings), which no request can name.
func (d *Decoder) bufferedTokens() (extra bool, err error) {
	r := &d.buffered.json
	err = d.elements(func() error {
		if len(d.tokens) >= d.limits.Tokens {
			return fault(ReasonTooLarge)
		}
		if r.peek() != '{' {
			return d.bufferedToken()
		}
		before := len(d.tokens)
		err := d.members(func(key []byte) error {
			switch string(key) {
			case "token_id":
				return d.bufferedToken()
			case "token_extra_id":
				if r.null() {
					return nil
				}
				v, _, err := r.integer()
				extra = extra || v != 0
				return err
			default:
				return r.skip()
			}
		})
		if err == nil && len(d.tokens) != before+1 {
			err = fault(ReasonBadEvent)
		}
		return err
	})
	return extra, err
}

// bufferedToken reads one token id. What does not fit in 32 bits is refused, the digests that stand for multimodal
// tokens among it (case 155).
func (d *Decoder) bufferedToken() error {
	r := &d.buffered.json
	if r.peek() == '"' {
		return fault(ReasonBadToken)
	}
	v, negative, err := r.integer()
	if err == nil && (negative || v > math.MaxUint32) {
		err = fault(ReasonBadToken)
	}
	if err == nil {
		d.tokens = append(d.tokens, uint32(v))
	}
	return err
}

// bufferedSalt reads a block's cache salt. hidden is true for a number (cache_salt_id): a digest of the salt, which no
// request can name.
func (d *Decoder) bufferedSalt(b *bufferedBlock) (hidden bool, err error) {
	r := &d.buffered.json
	if r.null() {
		return false, nil
	}
	if r.peek() != '"' {
		if _, _, err := r.integer(); err != nil {
			return false, fault(ReasonBadNamespace)
		}
		return true, nil
	}
	text, err := r.text(d.limits.StringBytes)
	if err == nil {
		b.salt, err = d.text(text)
	}
	return false, err
}

// bufferedMedia reads mm_keys: [{type, hash, start_offset, uuid}], of which the hash is the item's identity.
func (d *Decoder) bufferedMedia() ([]Extra, error) {
	r := &d.buffered.json
	if r.null() {
		return nil, nil
	}
	start := len(d.extras)
	err := d.elements(func() error {
		x := Extra{Kind: ExtraOther}
		err := d.members(func(key []byte) error {
			if string(key) != "hash" || r.peek() != '"' {
				return r.skip()
			}
			text, err := r.text(d.limits.StringBytes)
			if err == nil {
				x.Kind = ExtraPair
				x.Text, err = d.text(text)
			}
			return err
		})
		if err != nil {
			return err
		}
		return d.addExtra(x)
	})
	return d.extrasFrom(start), err
}
