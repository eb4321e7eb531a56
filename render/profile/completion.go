package profile

import (
	"math"

	"github.com/kvscout/kvscout/render/pyval"
)

// maxPrompts bounds the prompts of one body (VLLM_MAX_COMPLETION_PROMPTS).
const maxPrompts = 1024

// vllmCompletionOnly are the rules of fields that only completions have (CompletionRequest).
var vllmCompletionOnly = map[string]rule{
	"echo": optional(aBool), "logprobs": optional(anInt(-1, math.MaxInt64)),
	"max_tokens": optional(anInt(math.MinInt64, math.MaxInt64)), "n": anInt(math.MinInt64, math.MaxInt64),
	"suffix": optional(refusedText), "prompt_embeds": onlyNone,
}

// refusedText: the engine refuses a suffix unless the model has a way to fill in.
func refusedText(pyval.Value) verdict { return bad }

func vllmCompletion(d *pyval.Dict, model ModelConfig) (Prompt, error) {
	for _, rules := range []map[string]rule{vllmShared, vllmCompletionOnly} {
		if err := check(d, rules); err != nil {
			return Prompt{}, err
		}
	}
	l, err := vllmCommon(d, model, "max_tokens", 16)
	if err != nil {
		return Prompt{}, err
	}
	if err := checkModel(d, model); err != nil {
		return Prompt{}, err
	}
	l.addSpecial = boolean(d, "add_special_tokens", true)
	prompt, _ := d.Get("prompt")
	return elements(prompt, l)
}

// elements reads prompt: a text, texts, ids or lists of ids.
func elements(v pyval.Value, l limits) (Prompt, error) {
	p := Prompt{AddSpecialTokens: l.addSpecial, Copies: l.copies, limits: l}
	switch v := v.(type) {
	case string:
		if v == "" {
			return p, refused(ReasonLength, "the prompt is empty")
		}
		return p, p.add(v)
	case *pyval.List:
		if len(v.Items) == 0 {
			return p, refused(ReasonLength, "no prompt")
		}
		if _, ok := v.Items[0].(int64); ok {
			return p, p.add(v)
		}
		if len(v.Items) > maxPrompts {
			return p, notExact(ReasonLimit, "more than %d prompts", maxPrompts)
		}
		for _, item := range v.Items {
			if err := p.add(item); err != nil {
				return p, err
			}
		}
		return p, oneKind(p)
	}
	return p, refused(ReasonField, "prompt")
}

// oneKind refuses texts and ids in one body.
func oneKind(p Prompt) error {
	for _, e := range p.Elements {
		if (e.IDs == nil) != (p.Elements[0].IDs == nil) {
			return refused(ReasonField, "prompt of texts and ids")
		}
	}
	return nil
}

func (p *Prompt) add(v pyval.Value) error {
	switch v := v.(type) {
	case string:
		if pyval.HasSurrogate(v) {
			return refused(ReasonSurrogate, "the prompt has a lone surrogate")
		}
		p.Elements = append(p.Elements, Element{Text: v})
		return nil
	case *pyval.List:
		ids := make([]uint32, len(v.Items))
		for i, item := range v.Items {
			switch id := item.(type) {
			case int64:
				if id < 0 {
					return refused(ReasonField, "prompt with a negative id")
				}
				if id > math.MaxInt32 {
					return notExact(ReasonUnusual, "prompt with an id over 2^31")
				}
				ids[i] = uint32(id)
			case string, *pyval.List, *pyval.Dict, pyval.None:
				return refused(ReasonField, "prompt")
			default:
				return notExact(ReasonUnusual, "prompt with ids that are not written as integers")
			}
		}
		if len(ids) == 0 {
			return refused(ReasonLength, "the prompt is empty")
		}
		p.Elements = append(p.Elements, Element{IDs: ids})
		return nil
	case float64, bool:
		return notExact(ReasonUnusual, "prompt with ids that are not written as integers")
	}
	return refused(ReasonField, "prompt")
}
