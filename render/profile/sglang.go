package profile

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/kvscout/kvscout/render/chat"
	"github.com/kvscout/kvscout/render/pyval"
)

// sglangRules are the rules of fields of SGLang 0.5.23 (ChatCompletionRequest and CompletionRequest of protocol.py).
var sglangRules = map[string]rule{
	"model": aString, "n": anInt(1, 1024), "stream": aBool, "temperature": optional(aFloat(between(0, 2))),
	"max_tokens": optional(anInt(1, math.MaxInt32)), "max_completion_tokens": optional(anInt(1, math.MaxInt32)),
	"top_p": optional(aFloat(between(0, 1))), "top_k": optional(anInt(-1, math.MaxInt32)), "min_p": optional(aFloat(between(0, 1))),
	"stop": optional(stopTexts), "user": optional(aString), "continue_final_message": aBool, "echo": aBool,
	"skip_special_tokens": aBool, "ignore_eos": aBool, "separate_reasoning": aBool, "stream_reasoning": aBool,
	"chat_template_kwargs": optional(aDict), "reasoning": onlyNone, "input_ids": onlyNone, "images_config": onlyNone,
	"mm_processor_kwargs": onlyNone, "session_params": onlyNone, "task": onlyNone, "thinking": onlyNone,
	"reasoning_effort": optional(oneOf("none", "minimal", "medium", "high", "xhigh", "ultra", "max")),
}

// sglangOwn are model types that SGLang treats in ways of their own.
var sglangOwn = []string{"minimax_m3", "hunyuan", "inkling", "muse", "deepseek_v41", "gpt_oss"}

func sglangLimits(d *pyval.Dict, model ModelConfig) (limits, error) {
	l := limits{maxLen: model.MaxModelLen, copies: 1, defaultSide: "right"}
	if err := check(d, sglangRules); err != nil {
		return l, err
	}
	if n, ok := integer(d, "n"); ok {
		l.copies = n
	}
	if err := checkModel(d, model); err != nil {
		return l, err
	}
	for _, own := range sglangOwn {
		if strings.HasPrefix(model.ModelType, own) {
			return l, notExact(ReasonModelType, "sglang treats %s in a way of its own", model.ModelType)
		}
	}
	return l, nil
}

func sglangCompletion(d *pyval.Dict, model ModelConfig) (Prompt, error) {
	l, err := sglangLimits(d, model)
	if err != nil {
		return Prompt{}, err
	}
	l.addSpecial = true
	prompt, _ := d.Get("prompt")
	return elements(prompt, l)
}

func sglangChat(ctx context.Context, d *pyval.Dict, model ModelConfig) (Prompt, error) {
	l, err := sglangLimits(d, model)
	if err != nil {
		return Prompt{}, err
	}
	template := model.Template
	if template == nil {
		return Prompt{}, refused(ReasonTemplate, "the model has no chat template")
	}
	tools, err := sglangTools(d)
	if err != nil {
		return Prompt{}, err
	}
	if tools != nil && model.ToolTemplate != nil {
		template = model.ToolTemplate
	}
	raw, _ := d.Get("messages")
	messages, err := sglangMessages(raw, sglangParts(template, model.ContentFormat), template)
	if err != nil {
		return Prompt{}, err
	}
	if messages, err = sglangLast(messages, boolean(d, "continue_final_message", false)); err != nil {
		return Prompt{}, err
	}
	vars, err := sglangVars(d, model)
	if err != nil {
		return Prompt{}, err
	}
	vars["messages"] = &pyval.List{Items: messages}
	text, err := sglangRender(ctx, template, vars, tools)
	if err != nil {
		return Prompt{}, err
	}
	return textPrompt(text, l)
}

// sglangRender renders, and if that fails once more with the functions of the tools only.
func sglangRender(ctx context.Context, t *chat.Template, vars chat.Vars, tools *pyval.List) (string, error) {
	vars["tools"] = pyval.None{}
	if tools != nil {
		vars["tools"] = tools
	}
	text, err := execute(ctx, t, vars)
	if tools == nil || !errors.Is(err, ErrRefused) {
		return text, err
	}
	flat := &pyval.List{}
	for _, item := range tools.Items {
		function, _ := item.(*pyval.Dict).Get("function")
		flat.Items = append(flat.Items, function)
	}
	vars["tools"] = flat
	return execute(ctx, t, vars)
}

// sglangParts is detect_jinja_template_content_format.
func sglangParts(t *chat.Template, format ContentFormat) bool {
	if format != FormatAuto {
		return format == FormatParts
	}
	for _, word := range []string{"image", "audio", "video", "vision"} {
		if strings.Contains(t.Source(), word) {
			return true
		}
	}
	return t.LoopsOverContentOf("message", "msg", "m")
}

// sglangLast makes a user message of an assistant's message at the end. To continue it, SGLang encodes it by itself,
// which no text of ours can say.
func sglangLast(messages []pyval.Value, cont bool) ([]pyval.Value, error) {
	last := messages[len(messages)-1].(*pyval.Dict)
	content, _ := last.Get("content")
	if text, ok := content.(string); ok && stringField(last, "role") == "assistant" {
		if cont {
			return nil, notExact(ReasonUnusual, "continue_final_message: sglang encodes the message by itself")
		}
		messages[len(messages)-1] = pyval.NewDict("role", "user", "content", text)
	}
	return messages, nil
}

func sglangVars(d *pyval.Dict, model ModelConfig) (chat.Vars, error) {
	vars := chat.Vars{"documents": pyval.None{}, "add_generation_prompt": true}
	for name, token := range model.SpecialTokens {
		vars[name] = token
	}
	if model.DefaultTemplateKwargs != nil {
		for _, e := range model.DefaultTemplateKwargs.Entries() {
			vars[e.Key.(string)] = e.Value
		}
	}
	if effort, _ := d.Get("reasoning_effort"); !isNone(effort) {
		vars["reasoning_effort"] = effort
		vars["thinking"], vars["enable_thinking"] = effort != "none", effort != "none"
	}
	v, _ := d.Get("chat_template_kwargs")
	kwargs, ok := v.(*pyval.Dict)
	if !ok {
		return vars, nil
	}
	for _, e := range kwargs.Entries() {
		name := e.Key.(string)
		switch {
		case name == "chat_template":
			return nil, refused(ReasonTemplate, "chat_template in chat_template_kwargs")
		case slices.Contains(applyArguments, name), slices.Contains(sglangArguments, name):
			return nil, notExact(ReasonUnusual, "%s in chat_template_kwargs", name)
		}
		vars[name] = e.Value
	}
	return vars, nil
}

// sglangArguments are more names that do not reach the template as they are.
var sglangArguments = []string{
	"messages", "documents", "add_generation_prompt", "continue_final_message", "reasoning_effort", "self",
}
