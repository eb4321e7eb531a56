package profile

import (
	"context"
	"math"

	"github.com/kvscout/kvscout/render/chat"
	"github.com/kvscout/kvscout/render/pyval"
)

// trtllmRules are fields of TensorRT-LLM whose meaning for the prompt is known: none, or handled here. It refuses
// fields that it does not know, so one that is not here is not judged but left to a remote renderer.
var trtllmRules = map[string]rule{
	"model": aString, "messages": nil, "prompt": nil, "n": anInt(1, 1024), "stream": aBool, "user": optional(aString),
	"max_tokens": optional(anInt(1, math.MaxInt32)), "max_completion_tokens": optional(anInt(1, math.MaxInt32)),
	"temperature": optional(aFloat(between(0, 2))), "top_p": optional(aFloat(between(0, 1))), "seed": optional(anInt(math.MinInt64, math.MaxInt64)),
	"stop": optional(stopTexts), "stream_options": optional(streamOptions), "add_generation_prompt": aBool,
}

func trtllmLimits(d *pyval.Dict, model ModelConfig) (limits, error) {
	l := limits{maxLen: model.MaxModelLen, copies: 1, defaultSide: "right"}
	if salt, _ := d.Get("cache_salt"); !isNone(salt) {
		return l, refused(ReasonField, "cache_salt: events of TensorRT-LLM carry no salt")
	}
	for _, e := range d.Entries() {
		if _, known := trtllmRules[e.Key.(string)]; !known {
			return l, notExact(ReasonUnusual, "a field that we do not know TensorRT-LLM's treatment of")
		}
	}
	if err := check(d, trtllmRules); err != nil {
		return l, err
	}
	if n, ok := integer(d, "n"); ok {
		l.copies = n
	}
	return l, checkModel(d, model)
}

func trtllmCompletion(d *pyval.Dict, model ModelConfig) (Prompt, error) {
	l, err := trtllmLimits(d, model)
	if err != nil {
		return Prompt{}, err
	}
	l.addSpecial = true
	prompt, _ := d.Get("prompt")
	return elements(prompt, l)
}

// trtllmChat renders plain conversations: texts of user, system and assistant. Tools, tool calls, reasoning and parts
// go through extensions per model that we have not seen.
func trtllmChat(ctx context.Context, d *pyval.Dict, model ModelConfig) (Prompt, error) {
	l, err := trtllmLimits(d, model)
	if err != nil {
		return Prompt{}, err
	}
	raw, _ := d.Get("messages")
	list, ok := raw.(*pyval.List)
	if !ok || len(list.Items) == 0 {
		return Prompt{}, refused(ReasonMessages, "messages must be a list with at least one message")
	}
	if model.ContentFormat == FormatParts || model.Template != nil && model.Template.LoopsOverContent() {
		return Prompt{}, notExact(ReasonUnusual, "a template that wants parts")
	}
	messages := make([]pyval.Value, len(list.Items))
	for i, item := range list.Items {
		msg, ok := item.(*pyval.Dict)
		if !ok {
			return Prompt{}, refused(ReasonMessages, "message %d is no object", i)
		}
		role, content := stringField(msg, "role"), orNone(msg, "content")
		if msg.Len() != 2 || aString(content) != good || role != "user" && role != "system" && role != "assistant" {
			return Prompt{}, notExact(ReasonUnusual, "message %d: more than role and text", i)
		}
		messages[i] = pyval.NewDict("role", role, "content", content)
	}
	vars := chat.Vars{
		"messages": &pyval.List{Items: messages}, "tools": pyval.None{}, "documents": pyval.None{},
		"add_generation_prompt": boolean(d, "add_generation_prompt", true),
	}
	for name, token := range model.SpecialTokens {
		vars[name] = token
	}
	text, err := execute(ctx, model.Template, vars)
	if err != nil {
		return Prompt{}, err
	}
	return textPrompt(text, l)
}
