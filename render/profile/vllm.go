package profile

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/kvscout/kvscout/render/chat"
	"github.com/kvscout/kvscout/render/pyval"
)

// vllmChatOnly are the rules of fields that only chats have (ChatCompletionRequest).
var vllmChatOnly = map[string]rule{
	"logprobs": optional(aBool), "top_logprobs": optional(anInt(-1, math.MaxInt64)),
	"max_tokens":            optional(anInt(math.MinInt64, math.MaxInt64)),
	"max_completion_tokens": optional(anInt(math.MinInt64, math.MaxInt64)),
	"n":                     optional(anInt(math.MinInt64, math.MaxInt64)),
	"reasoning_effort":      optional(oneOf("none", "minimal", "low", "medium", "high", "xhigh", "max")),
	"include_reasoning":     aBool, "parallel_tool_calls": optional(aBool), "return_prompt_text": optional(aBool), "echo": aBool,
	"add_generation_prompt": aBool, "continue_final_message": aBool,
	"documents":            optional(listOf(textDict, anyLength)),
	"chat_template":        optional(aString),
	"chat_template_kwargs": optional(aDict),
	"media_io_kwargs":      optional(emptyDict), "mm_processor_kwargs": optional(emptyDict),
}

// textDict is dict[str, str].
func textDict(v pyval.Value) verdict {
	d, ok := v.(*pyval.Dict)
	if !ok {
		return bad
	}
	for _, e := range d.Entries() {
		if aString(e.Value) != good {
			return bad
		}
	}
	return good
}

// emptyDict: per-request media settings are refused unless the server trusts its clients.
func emptyDict(v pyval.Value) verdict {
	d, ok := v.(*pyval.Dict)
	if !ok || d.Len() > 0 {
		return bad
	}
	return good
}

func vllmChat(ctx context.Context, d *pyval.Dict, model ModelConfig) (Prompt, error) {
	for _, rules := range []map[string]rule{vllmShared, vllmChatOnly} {
		if err := check(d, rules); err != nil {
			return Prompt{}, err
		}
	}
	maxTokens := "max_tokens"
	if _, ok := integer(d, "max_completion_tokens"); ok {
		maxTokens = "max_completion_tokens"
	}
	l, err := vllmCommon(d, model, maxTokens, 0)
	if err != nil {
		return Prompt{}, err
	}
	if err := checkModel(d, model); err != nil {
		return Prompt{}, err
	}
	if err := vllmLogprobs(d); err != nil {
		return Prompt{}, err
	}
	if kv, _ := d.Get("kv_transfer_params"); hasIDs(kv) {
		return Prompt{}, notExact(ReasonUnusual, "kv_transfer_params with prompt_token_ids")
	}
	tools, err := vllmTools(d, model)
	if err != nil {
		return Prompt{}, err
	}
	text, err := vllmText(ctx, d, tools, model)
	if err != nil {
		return Prompt{}, err
	}
	l.addSpecial = boolean(d, "add_special_tokens", false)
	return textPrompt(text, l)
}

func hasIDs(kv pyval.Value) bool {
	d, ok := kv.(*pyval.Dict)
	if !ok {
		return false
	}
	ids, _ := d.Get("prompt_token_ids")
	return !isNone(ids)
}

func vllmLogprobs(d *pyval.Dict) error {
	if n, ok := integer(d, "top_logprobs"); ok && n != 0 && !boolean(d, "logprobs", false) {
		return refused(ReasonField, "top_logprobs without logprobs")
	}
	return nil
}

// vllmText renders the messages (HfRenderer.render_messages and safe_apply_chat_template).
func vllmText(ctx context.Context, d *pyval.Dict, tools *pyval.List, model ModelConfig) (string, error) {
	if v, _ := d.Get("chat_template"); !isNone(v) {
		return "", refused(ReasonTemplate, "chat_template in the request")
	}
	kwargs, err := vllmKwargs(d, model)
	if err != nil {
		return "", err
	}
	template := model.Template
	if tools != nil && model.ToolTemplate != nil {
		template = model.ToolTemplate
	}
	if template == nil {
		return "", refused(ReasonTemplate, "the model has no chat template")
	}
	parts := model.ContentFormat == FormatParts || model.ContentFormat == FormatAuto && template.LoopsOverContent()
	raw, _ := d.Get("messages")
	messages, err := vllmMessages(raw, parts)
	if err != nil {
		return "", err
	}
	if messages, err = vllmDevelopers(messages, template); err != nil {
		return "", err
	}
	if len(messages) == 0 {
		return "", refused(ReasonMessages, "no messages")
	}
	vars := chat.Vars{"tools": pyval.None{}, "documents": pyval.None{}}
	for name, token := range model.SpecialTokens {
		vars[name] = token
	}
	for _, e := range kwargs.Entries() {
		name := e.Key.(string)
		if name == "add_generation_prompt" || name == "documents" || template.Uses(name) {
			vars[name] = e.Value
		}
	}
	if tools != nil {
		vars["tools"] = tools
	}
	if cont, _ := kwargs.Get("continue_final_message"); pyval.Truth(cont) {
		return continued(ctx, template, vars, messages)
	}
	vars["messages"] = &pyval.List{Items: messages}
	return execute(ctx, template, vars)
}

// applyArguments are parameters of apply_chat_template. In a request's template arguments they do not reach the
// template; what they do we leave to the engine.
var applyArguments = []string{
	"conversation", "tools", "tokenize", "padding", "truncation", "max_length", "return_tensors", "return_dict",
	"return_assistant_tokens_mask", "tokenizer_kwargs", "model_config", "tokenizer",
}

// vllmKwargs merges the arguments of the template: the server's defaults, the request's, the top level fields.
func vllmKwargs(d *pyval.Dict, model ModelConfig) (*pyval.Dict, error) {
	v, _ := d.Get("chat_template_kwargs")
	own, _ := v.(*pyval.Dict)
	if own == nil {
		own = &pyval.Dict{}
	}
	if t, _ := own.Get("chat_template"); !isNone(t) {
		return nil, refused(ReasonTemplate, "chat_template in chat_template_kwargs")
	}
	request := own.Copy()
	request.Delete("chat_template")
	for _, e := range request.Entries() {
		if name := e.Key.(string); name == "messages" {
			return nil, refused(ReasonField, "messages in chat_template_kwargs")
		} else if slices.Contains(applyArguments, name) {
			return nil, notExact(ReasonUnusual, "%s in chat_template_kwargs", name)
		}
	}
	agp := boolean(d, "add_generation_prompt", true)
	cont := boolean(d, "continue_final_message", false)
	if agp && cont {
		return nil, refused(ReasonField, "continue_final_message with add_generation_prompt")
	}
	request.Set("add_generation_prompt", agp)
	request.Set("continue_final_message", cont)
	if documents, _ := d.Get("documents"); !isNone(documents) {
		request.Set("documents", documents)
	}
	if effort, _ := d.Get("reasoning_effort"); !isNone(effort) {
		request.Set("reasoning_effort", effort)
		if _, given := own.Get("enable_thinking"); !given {
			request.Set("enable_thinking", effort != "none")
		}
	}
	merged := &pyval.Dict{}
	if model.DefaultTemplateKwargs != nil {
		merged = model.DefaultTemplateKwargs.Copy()
	}
	for _, e := range request.Entries() {
		if !isNone(e.Value) && e.Value != pyval.Value("auto") {
			merged.Set(e.Key.(string), e.Value)
		}
	}
	if documents, ok := merged.Get("documents"); ok && listOf(aDict, anyLength)(documents) != good {
		return nil, refused(ReasonField, "documents")
	}
	return merged, nil
}

// vllmDevelopers makes system messages of developer messages where the template does not know that role, and puts all
// system messages into one at the front if one of them is not there (_convert_developer_to_system).
func vllmDevelopers(messages []pyval.Value, template *chat.Template) ([]pyval.Value, error) {
	found := false
	for _, m := range messages {
		found = found || stringField(m.(*pyval.Dict), "role") == "developer"
	}
	if !found {
		return messages, nil
	}
	if src := template.Source(); strings.Contains(src, `"developer"`) || strings.Contains(src, "'developer'") {
		return messages, nil
	}
	var texts []string
	var others []pyval.Value
	inOrder := true
	converted := make([]pyval.Value, len(messages))
	for i, m := range messages {
		msg := m.(*pyval.Dict)
		role := stringField(msg, "role")
		if role == "developer" {
			msg = msg.Copy()
			msg.Set("role", "system")
			msg.Delete("tools")
		}
		converted[i] = msg
		if role != "developer" && role != "system" {
			others = append(others, msg)
			continue
		}
		inOrder = inOrder && i == 0 && texts == nil
		if text := contentText(msg); text != "" {
			texts = append(texts, text)
		}
	}
	if inOrder {
		return converted, nil
	}
	merged := pyval.NewDict("role", "system", "content", strings.Join(texts, "\n\n"))
	return append([]pyval.Value{merged}, others...), nil
}

// contentText is the content of a message as one text.
func contentText(msg *pyval.Dict) string {
	content, _ := msg.Get("content")
	list, ok := content.(*pyval.List)
	if !ok {
		s, _ := content.(string)
		return s
	}
	var texts []string
	for _, p := range list.Items {
		if part, ok := p.(*pyval.Dict); ok {
			if text, ok := part.Get("text"); ok {
				s, _ := text.(string)
				texts = append(texts, s)
			}
		}
	}
	return strings.Join(texts, "\n")
}
