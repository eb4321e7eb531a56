package render

import "io"

// limits bound an answer: tokens of all prompts together, and prompts.
type limits struct {
	tokens, prompts int
}

// decodeAnswer reads the answer of vLLM's render routes: one object for a chat, an array of one object per prompt for
// completions (list). Its errors are ErrContract and ErrTooLarge, or those of r as they came.
func decodeAnswer(r io.Reader, list bool, lim limits) ([]Prompt, error) {
	d := decoder{s: newScanner(r), room: lim.tokens}
	var prompts []Prompt
	one := func() error {
		if len(prompts) == lim.prompts {
			return tooLargef("more than %d prompts", lim.prompts)
		}
		d.index = len(prompts)
		p, err := d.prompt()
		prompts = append(prompts, p)
		return err
	}
	decode := one
	if list {
		decode = func() error { return d.s.array(one) }
	}
	if err := decode(); err != nil {
		return nil, err
	}
	if err := d.s.finish(); err != nil {
		return nil, err
	}
	if len(prompts) == 0 {
		return nil, contractf("no prompts")
	}
	return prompts, nil
}

type decoder struct {
	s     *scanner
	index int // of the prompt being read
	room  int // how many more tokens the answer may have
}

// prompt reads one GenerateRequest (vllm/entrypoints/scale_out/token_in_token_out/protocol.py).
func (d *decoder) prompt() (Prompt, error) {
	var p Prompt
	seen := map[string]bool{} // holds none but the names below
	err := d.s.object(func(key []byte) error {
		switch name := string(key); name {
		case "token_ids", "features", "sampling_params":
			if seen[name] {
				return contractf("prompt %d has two %s", d.index, name)
			}
			seen[name] = true
			return d.member(name, &p)
		case "input_ids", "tokens_trusted": // SGLang's ids; TensorRT-LLM's word on whether its token_ids are exact
			seen[name] = true
		}
		return d.s.skip()
	})
	switch {
	case err != nil:
		return Prompt{}, err
	case seen["tokens_trusted"]:
		return Prompt{}, contractf("prompt %d has tokens_trusted, as trtllm-render sends", d.index)
	case !seen["token_ids"] && seen["input_ids"]:
		return Prompt{}, contractf("prompt %d has input_ids for token_ids, as sglang-renderer sends", d.index)
	case !seen["token_ids"]:
		return Prompt{}, contractf("prompt %d has no token_ids", d.index)
	case len(p.Tokens) == 0: // rule 14
		return Prompt{}, contractf("prompt %d has empty token_ids", d.index)
	}
	return p, checkPlaces(d.index, p)
}

func (d *decoder) member(name string, p *Prompt) (err error) {
	switch name {
	case "token_ids":
		p.Tokens, err = d.tokens()
	case "features":
		p.Features, err = d.features()
	case "sampling_params":
		p.SkipsPrefixCache, err = d.skipsPrefixCache()
	}
	return err
}

func (d *decoder) tokens() ([]uint32, error) {
	var tokens []uint32
	err := d.s.array(func() error {
		if d.room == 0 {
			return tooLargef("more tokens than the limit, in prompt %d", d.index)
		}
		d.room--
		id, err := d.s.count()
		tokens = append(tokens, id)
		return err
	})
	return tokens, err
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
