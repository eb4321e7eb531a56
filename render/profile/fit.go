package profile

import "slices"

// limits are what a body says about the tokens of its prompts.
type limits struct {
	addSpecial bool
	copies     int
	maxLen     int // of the model; 0: not known
	// truncate is how many tokens to keep; -1 as many as fit, none if not set.
	truncate    int
	truncateSet bool
	side        string // "left" or "right" if the body says so
	defaultSide string // of the engine's tokenizer
	minTokens   int
	maxTokens   int  // asked for; 0: nothing said
	echoOnly    bool // nothing is generated
}

// Encode makes the tokens of a text, with the tokenizer's special tokens or without.
type Encode func(text string, addSpecial bool) ([]uint32, error)

// Tokens makes the tokens of an element as the engine does: encoded, truncated, held against the context length. It
// errs with an *Error, or with encode's error.
func (p Prompt) Tokens(e Element, encode Encode) ([]uint32, error) {
	ids := e.IDs
	var err error
	if ids == nil {
		if ids, err = encode(e.Text, p.AddSpecialTokens); err != nil {
			return nil, err
		}
	}
	if ids, err = p.truncated(e, ids, encode); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, refused(ReasonLength, "the prompt has no tokens")
	}
	if p.limits.maxLen == 0 {
		return ids, nil
	}
	left := p.limits.maxLen - len(ids)
	if left < 0 || left == 0 && !p.limits.echoOnly {
		return nil, refused(ReasonLength, "prompt of %d tokens, the model takes %d with what it generates", len(ids), p.limits.maxLen)
	}
	if p.limits.minTokens > left && !p.limits.echoOnly {
		return nil, refused(ReasonLength, "min_tokens leaves no room")
	}
	return ids, nil
}

// keep is how many tokens truncation leaves; -1 if there is none.
func (l limits) keep() int {
	switch {
	case !l.truncateSet:
		return -1
	case l.truncate >= 0:
		return l.truncate
	case l.maxLen == 0:
		return -1
	case l.maxTokens == 0:
		return l.maxLen
	}
	return l.maxLen - 1
}

func (p Prompt) truncated(e Element, ids []uint32, encode Encode) ([]uint32, error) {
	l := p.limits
	n := l.keep()
	if n < 0 || len(ids) <= n {
		return ids, nil
	}
	if l.side != "" && e.IDs == nil && l.maxLen > 0 && len(e.Text) > l.maxLen {
		// vLLM first cuts the text, at a length that depends on the longest token (TokenizeParams._text_len_check).
		return nil, notExact(ReasonTruncation, "truncation_side of a long text")
	}
	side := l.side
	if side == "" {
		side = l.defaultSide
	}
	if e.IDs == nil && p.AddSpecialTokens && l.side == "" {
		return truncateText(e.Text, ids, n, side, encode)
	}
	return cut(ids, n, side), nil
}

func cut(ids []uint32, n int, side string) []uint32 {
	if side == "left" {
		return ids[len(ids)-n:]
	}
	return ids[:n]
}

// truncateText cuts as Hugging Face's tokenizers do: special tokens stay, the text gives way to them.
func truncateText(text string, ids []uint32, n int, side string, encode Encode) ([]uint32, error) {
	plain, err := encode(text, false)
	if err != nil {
		return nil, err
	}
	special := len(ids) - len(plain)
	if special < 0 || n < special {
		return nil, notExact(ReasonTruncation, "more special tokens than truncation keeps")
	}
	for before := 0; before <= special; before++ {
		if slices.Equal(ids[before:before+len(plain)], plain) {
			kept := slices.Clone(ids[:before])
			kept = append(kept, cut(plain, n-special, side)...)
			return append(kept, ids[before+len(plain):]...), nil
		}
	}
	return nil, notExact(ReasonTruncation, "special tokens inside of the text")
}
