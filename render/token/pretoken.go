package token

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// preTokenizer is one step that cuts a text into words. It gives emit the pieces in order; at is 0 for the one that
// begins where s began.
type preTokenizer interface {
	cut(m *matcher, s string, first bool, emit func(piece string, at int) error) error
}

// gpt2Pattern is what ByteLevel cuts by (tokenizers' byte_level.rs).
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// preTokenizers are the steps of a file, flattened.
type preTokenizers struct {
	steps []preTokenizer
	// bytes: the last step turns text into letters of bytes. It is not a step here: the model then works on bytes.
	bytes bool
	// asksFirst: a step treats the beginning of the text in its own way.
	asksFirst bool
}

func (p *preTokenizers) parse(raw json.RawMessage) error {
	if err := p.add(raw, 0); err != nil {
		return err
	}
	if n := len(p.steps); n > 0 {
		if _, last := p.steps[n-1].(byteLetters); last {
			p.steps, p.bytes = p.steps[:n-1], true
		}
	}
	return nil
}

func (p *preTokenizers) add(raw json.RawMessage, depth int) error {
	kind, err := kindOf(raw)
	if err != nil || kind == "" && depth == 0 {
		return err
	}
	if len(p.steps) >= maxSteps || depth > 4 {
		return unsupported("more than %d pre-tokenizers, or deep nesting", maxSteps)
	}
	switch kind {
	case "Sequence":
		var v struct {
			Type          string
			Pretokenizers []json.RawMessage
		}
		if err := strictly(raw, &v); err != nil {
			return err
		}
		for _, part := range v.Pretokenizers {
			if err := p.add(part, depth+1); err != nil {
				return err
			}
		}
		return nil
	case "ByteLevel":
		return p.addByteLevel(raw)
	case "Split":
		return p.addSplit(raw)
	case "Metaspace":
		return p.addMetaspace(raw)
	case "Digits", "Punctuation", "WhitespaceSplit", "Whitespace":
		return p.addSet(raw, kind)
	}
	return unsupported("pre-tokenizer %.40q", kind)
}

func (p *preTokenizers) addByteLevel(raw json.RawMessage) error {
	var v struct {
		Type        string
		AddPrefix   *bool `json:"add_prefix_space"`
		TrimOffsets *bool `json:"trim_offsets"` // offsets only
		UseRegex    *bool `json:"use_regex"`
	}
	if err := strictly(raw, &v); err != nil {
		return err
	}
	if v.AddPrefix == nil || v.TrimOffsets == nil {
		return badFile("pre-tokenizer ByteLevel without add_prefix_space or trim_offsets")
	}
	if *v.AddPrefix {
		p.steps = append(p.steps, leadingSpace{})
	}
	if v.UseRegex == nil || *v.UseRegex {
		gpt2, err := compilePattern(gpt2Pattern)
		if err != nil {
			return err
		}
		p.steps = append(p.steps, &splitter{find: gpt2})
	}
	p.steps = append(p.steps, byteLetters{})
	return nil
}

func (p *preTokenizers) addSplit(raw json.RawMessage) error {
	var v struct {
		Type     string
		Pattern  textPattern
		Behavior string
		Invert   *bool
	}
	if err := strictly(raw, &v); err != nil {
		return err
	}
	b, ok := behaviors[v.Behavior]
	if !ok || v.Invert == nil {
		return badFile("pre-tokenizer Split: behavior %.40q, or invert is missing", v.Behavior)
	}
	s := &splitter{behavior: b, inverted: *v.Invert}
	if v.Pattern.text != "" {
		s.find = literal(v.Pattern.text)
	} else {
		pattern, err := v.Pattern.compile()
		if err != nil {
			return err
		}
		s.find = pattern
	}
	p.steps = append(p.steps, s)
	return nil
}

func (p *preTokenizers) addSet(raw json.RawMessage, kind string) error {
	var v struct {
		Type       string
		Individual *bool   `json:"individual_digits"`
		Behavior   *string `json:"behavior"`
	}
	if err := strictly(raw, &v); err != nil {
		return err
	}
	s := &splitter{}
	switch kind {
	case "Digits":
		if v.Individual == nil {
			return badFile("pre-tokenizer Digits without individual_digits")
		}
		s.find = oneOf{newCharset(tables().sets["digits"])}
		if !*v.Individual {
			s.behavior = contiguous
		}
	case "Punctuation":
		s.find = oneOf{newCharset(tables().sets["punctuation"])}
		if v.Behavior != nil {
			b, ok := behaviors[*v.Behavior]
			if !ok {
				return badFile("pre-tokenizer Punctuation: behavior %.40q", *v.Behavior)
			}
			s.behavior = b
		}
	case "Whitespace": // the words of \w+|[^\w\s]+, as Rust's regex crate has these classes
		word, space := tables().sets["word"], tables().sets["whitespace"]
		run := func(rs ranges) expr { return &repeat{of: set(rs), min: 1, max: -1} }
		s.find = compileExpr(alt{run(word), run(union(word, space).not())})
		s.behavior, s.inverted = removed, true
	case "WhitespaceSplit":
		s.find, s.behavior = oneOf{newCharset(tables().sets["whitespace"])}, removed
	}
	p.steps = append(p.steps, s)
	return nil
}

func (p *preTokenizers) addMetaspace(raw json.RawMessage) error {
	var v struct {
		Type        string
		Replacement string
		AddPrefix   *bool   `json:"add_prefix_space"`
		Scheme      *string `json:"prepend_scheme"`
		Split       *bool
		StrRep      *string `json:"str_rep"` // never read
	}
	if err := strictly(raw, &v); err != nil {
		return err
	}
	if utf8.RuneCountInString(v.Replacement) != 1 {
		return badFile("pre-tokenizer Metaspace: replacement %.40q is not one character", v.Replacement)
	}
	ms := &metaspace{replacement: v.Replacement, scheme: "always", split: v.Split == nil || *v.Split}
	if v.Scheme != nil {
		ms.scheme = *v.Scheme
	}
	if v.AddPrefix != nil && !*v.AddPrefix && ms.scheme != "never" {
		return badFile("pre-tokenizer Metaspace: add_prefix_space is false, prepend_scheme %.40q", ms.scheme)
	}
	switch ms.scheme {
	case "always", "never":
	case "first":
		p.asksFirst = true
	default:
		return badFile("pre-tokenizer Metaspace: prepend_scheme %.40q", ms.scheme)
	}
	p.steps = append(p.steps, ms)
	return nil
}

// splitter cuts at the matches of find.
type splitter struct {
	find     finder
	behavior behavior
	inverted bool
}

func (t *splitter) cut(m *matcher, s string, _ bool, emit func(string, int) error) error {
	return split(m, s, t.find, t.behavior, t.inverted, emit)
}

// leadingSpace makes every piece begin with a space.
type leadingSpace struct{}

func (leadingSpace) cut(_ *matcher, s string, _ bool, emit func(string, int) error) error {
	if !strings.HasPrefix(s, " ") {
		s = " " + s
	}
	return emit(s, 0)
}

func (byteLetters) cut(_ *matcher, s string, _ bool, emit func(string, int) error) error {
	return emit(toByteLetters(s), 0)
}

// metaspace writes spaces as a visible character and lets words begin with it.
type metaspace struct {
	replacement string
	scheme      string
	split       bool
}

func (t *metaspace) cut(m *matcher, s string, first bool, emit func(string, int) error) error {
	s = strings.ReplaceAll(s, " ", t.replacement)
	if (t.scheme == "always" || t.scheme == "first" && first) && !strings.HasPrefix(s, t.replacement) {
		s = t.replacement + s
	}
	if !t.split {
		return emit(s, 0)
	}
	return split(m, s, literal(t.replacement), withNext, false, emit)
}

func (p *preTokenizers) size() int64 {
	n := int64(0)
	for _, step := range p.steps {
		s, ok := step.(*splitter)
		if !ok {
			continue
		}
		switch f := s.find.(type) {
		case *pattern:
			n += f.bytes
		case oneOf:
			n += f.set.size()
		}
	}
	return n
}
