package render

import "io"

// limits bound an answer: tokens of all prompts together, and prompts.
type limits struct {
	tokens, prompts int
}

// maxFingerprint bounds a fingerprint, and maxWhy the reason why ids are not to be trusted, in bytes.
const (
	maxFingerprint = 256
	maxWhy         = 200
)

// decodeAnswer reads an answer of the given form: one object for a chat, an array of one object per prompt for
// completions. It returns the prompts and the fingerprint, empty if none is stated. Its errors are ErrContract,
// ErrTooLarge and ErrUntrusted, or those of r as they came.
func decodeAnswer(r io.Reader, f form, lim limits) ([]Prompt, string, error) {
	d := decoder{s: newScanner(r), form: f, room: lim.tokens}
	var prompts []Prompt
	one := func() error {
		if len(prompts) == lim.prompts*max(f.copies, 1) {
			return tooLargef("more than %d prompts", lim.prompts)
		}
		d.index = len(prompts)
		p, err := d.prompt()
		prompts = append(prompts, p)
		return err
	}
	decode := one
	switch {
	case f.tokens:
		decode = func() (err error) {
			prompts, err = d.tokenized(lim.prompts)
			return err
		}
	case f.list:
		decode = func() error { return d.s.array(one) }
	}
	if err := decode(); err != nil {
		return nil, "", err
	}
	if err := d.s.finish(); err != nil {
		return nil, "", err
	}
	if len(prompts) == 0 {
		return nil, "", contractf("no prompts")
	}
	prompts, err := f.merge(prompts)
	return prompts, d.fingerprint, err
}

type decoder struct {
	s           *scanner
	form        form
	index       int // of the prompt being read
	room        int // how many more tokens the answer may have
	fingerprint string
}

// verdict is what trtllm-render says of its ids (tensorrt_llm/serve/render/serving.py).
type verdict struct {
	trusted bool
	why     string
	digest  string
}

// prompt reads one GenerateRequest (vllm/entrypoints/scale_out/token_in_token_out/protocol.py; the other engines' have
// the same shape).
func (d *decoder) prompt() (Prompt, error) {
	var p Prompt
	var said verdict
	seen := map[string]bool{} // holds none but the names below
	err := d.s.object(func(key []byte) error {
		switch name := string(key); name {
		case d.form.ids, "features", "sampling_params":
			if seen[name] {
				return contractf("prompt %d has two %s", d.index, name)
			}
			seen[name] = true
			return d.member(name, &p)
		case "tokens_trusted", "untrusted_reason", "fingerprint":
			seen[name] = true
			return d.judge(name, &said)
		case "token_ids", "input_ids": // of another protocol
			seen[name] = true
		}
		return d.s.skip()
	})
	if err != nil {
		return Prompt{}, err
	}
	if err := d.check(seen, said, p); err != nil {
		return Prompt{}, err
	}
	return p, checkPlaces(d.index, p)
}

// check errs unless what was seen is an answer of the protocol.
func (d *decoder) check(seen map[string]bool, said verdict, p Prompt) error {
	ids := d.form.ids
	switch {
	case !d.form.judged && seen["tokens_trusted"]:
		return contractf("prompt %d has tokens_trusted, as trtllm-render sends", d.index)
	case !seen[ids] && seen["input_ids"]:
		return contractf("prompt %d has input_ids for token_ids, as sglang-renderer sends", d.index)
	case !seen[ids] && seen["token_ids"]:
		return contractf("prompt %d has token_ids for input_ids, as vllm-render and trtllm-render send", d.index)
	case !seen[ids]:
		return contractf("prompt %d has no %s", d.index, ids)
	case d.form.judged && !seen["tokens_trusted"]:
		return contractf("prompt %d has no tokens_trusted", d.index)
	case d.form.judged && !said.trusted:
		return failf(ReasonUntrusted, "of prompt %d: %q", d.index, said.why)
	case len(p.Tokens) == 0: // rule 14
		return contractf("prompt %d has empty %s", d.index, ids)
	case d.index > 0 && said.digest != d.fingerprint:
		return contractf("prompt %d has another fingerprint than the one before it", d.index)
	}
	d.fingerprint = said.digest
	return nil
}

func (d *decoder) member(name string, p *Prompt) (err error) {
	switch name {
	case "features":
		p.Features, err = d.features()
	case "sampling_params":
		p.SkipsPrefixCache, err = d.skipsPrefixCache()
	default:
		p.Tokens, err = d.tokens()
	}
	return err
}

// judge reads a field of the verdict.
func (d *decoder) judge(name string, to *verdict) error {
	c, err := d.s.peek()
	switch {
	case err != nil:
		return err
	case name == "tokens_trusted":
		to.trusted = c == 't'
		return d.s.skip()
	case name == "untrusted_reason":
		return d.s.optionalText(&to.why, maxWhy)
	case c != '{':
		return d.s.skip()
	}
	return d.s.object(func(key []byte) error {
		if string(key) == "digest" {
			return d.s.optionalText(&to.digest, maxFingerprint)
		}
		return d.s.skip()
	})
}

// tokenized reads {"tokens": [id] or [[id]], ...}.
func (d *decoder) tokenized(most int) ([]Prompt, error) {
	var prompts []Prompt
	seen := false
	err := d.s.object(func(key []byte) error {
		if string(key) != "tokens" {
			return d.s.skip()
		}
		if seen {
			return contractf("the answer has two tokens")
		}
		seen = true
		var err error
		prompts, err = d.oneOrMore(most)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !seen:
		return nil, contractf("the answer has no tokens")
	}
	for i, p := range prompts {
		if len(p.Tokens) == 0 { // rule 14
			return nil, contractf("prompt %d has empty tokens", i)
		}
	}
	return prompts, nil
}

// oneOrMore reads a list of ids, or of lists of ids.
func (d *decoder) oneOrMore(most int) ([]Prompt, error) {
	var flat []uint32
	var prompts []Prompt
	err := d.s.array(func() error {
		c, err := d.s.peek()
		if err != nil {
			return err
		}
		if c != '[' && prompts == nil {
			return d.take(&flat)
		}
		if flat != nil {
			return d.s.unexpected("id")
		}
		if len(prompts) == most {
			return tooLargef("more than %d prompts", most)
		}
		d.index = len(prompts)
		ids, err := d.tokens()
		prompts = append(prompts, Prompt{Tokens: ids})
		return err
	})
	if flat != nil {
		prompts = []Prompt{{Tokens: flat}}
	}
	return prompts, err
}

func (d *decoder) tokens() ([]uint32, error) {
	var tokens []uint32
	err := d.s.array(func() error { return d.take(&tokens) })
	return tokens, err
}

// take appends one id to to.
func (d *decoder) take(to *[]uint32) error {
	if d.room == 0 {
		return tooLargef("more tokens than the limit, in prompt %d", d.index)
	}
	d.room--
	id, err := d.s.count()
	*to = append(*to, id)
	return err
}

// skipsPrefixCache reads the one field of the sampling parameters that says whether a match can be used at all.
func (d *decoder) skipsPrefixCache() (skips bool, err error) {
	if c, err := d.s.peek(); err != nil || c != '{' {
		return false, orSkip(d.s, err)
	}
	err = d.s.object(func(key []byte) error {
		if string(key) == "skip_reading_prefix_cache" {
			c, err := d.s.peek()
			skips = c == 't'
			return orSkip(d.s, err)
		}
		return d.s.skip()
	})
	return skips, err
}

// orSkip returns err, or skips a value if there is none.
func orSkip(s *scanner, err error) error {
	if err != nil {
		return err
	}
	return s.skip()
}
