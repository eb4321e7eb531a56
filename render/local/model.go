package local

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/render/chat"
	"github.com/kvscout/kvscout/render/hub"
	"github.com/kvscout/kvscout/render/profile"
	"github.com/kvscout/kvscout/render/token"
)

// model is what the files of a directory become.
type model struct {
	engine    profile.Engine
	config    profile.ModelConfig
	tokenizer encoder
	timed     bool  // the template prints the time
	size      int64 // bytes in memory
}

// toolTemplate is the name of the template that is taken when a request has tools.
const toolTemplate = "tool_use"

// newModel makes a model of files, or says what of them cannot be rendered exactly.
func newModel(files hub.Files, o *Options) (*model, error) {
	engine, err := profile.ParseEngine(o.Profile)
	if err != nil {
		return nil, err
	}
	h, err := hub.Open(files)
	if err != nil {
		return nil, err
	}
	m := &model{engine: engine, config: profile.ModelConfig{
		Names: o.Served, MaxModelLen: o.MaxModelLen, ModelType: h.Type, SpecialTokens: make(map[string]string),
		ToolParser: !o.NoToolParser, ContentFormat: o.contentFormat(), DefaultTemplateKwargs: o.TemplateKwargs,
	}}
	for _, s := range h.Specials {
		m.config.SpecialTokens[s.Name] = s.Text
	}
	if m.config.Template, err = m.template(h, "default", o); err != nil {
		return nil, err
	}
	for _, t := range h.Templates {
		if t.Name != toolTemplate {
			continue
		}
		if m.config.ToolTemplate, err = m.template(h, toolTemplate, o); err != nil {
			return nil, err
		}
	}
	if m.tokenizer, err = newEncoder(h.Tokenizer); err != nil {
		return nil, err
	}
	closeLater(m)
	m.size += m.tokenizer.Size()
	return m, nil
}

// templateFactor is about how many bytes a template takes for each of its text.
const templateFactor = 20

// template compiles the template of that name; nil without one, as then engines refuse chats.
func (m *model) template(h *hub.Model, name string, o *Options) (*chat.Template, error) {
	text, ok := h.Template(name)
	if !ok {
		return nil, nil
	}
	t, err := chat.Parse(text, chat.WithClock(o.Now))
	if err != nil {
		return nil, fmt.Errorf("template %q: %w", name, err)
	}
	m.timed = m.timed || strings.Contains(text, "strftime_now")
	m.size += int64(templateFactor * len(text))
	return t, nil
}

// render renders a body. Its errors are *render.Errors, or ctx's.
func (m *model) render(ctx context.Context, req render.Request, o *Options) ([]render.Prompt, error) {
	var p profile.Prompt
	var err error
	if req.Path == render.PathChat {
		p, err = profile.Chat(ctx, m.engine, req.Body, m.config)
	} else {
		p, err = profile.Completion(m.engine, req.Body, m.config)
	}
	if err != nil {
		return nil, judge(err)
	}
	if len(p.Elements) > o.MaxPrompts {
		return nil, failf(render.ReasonTooLarge, "%d prompts, limit %d", len(p.Elements), o.MaxPrompts)
	}
	encode := func(text string, special bool) ([]uint32, error) { return m.tokenizer.Encode(nil, text, special) }
	skips := m.engine == profile.VLLM && skipsPrefixCache(req.Body)
	out := make([]render.Prompt, 0, len(p.Elements))
	room := o.MaxTokens
	for _, e := range p.Elements {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ids, err := p.Tokens(e, encode)
		if err != nil {
			return nil, judge(err)
		}
		if room -= len(ids); room < 0 {
			return nil, failf(render.ReasonTooLarge, "more than %d tokens", o.MaxTokens)
		}
		if len(ids) == 0 { // rule 14
			return nil, failf(render.ReasonBadRequest, "the prompt has no tokens")
		}
		out = append(out, render.Prompt{Tokens: ids, SkipsPrefixCache: skips})
	}
	if len(out) == 0 {
		return nil, failf(render.ReasonBadRequest, "no prompt")
	}
	return out, nil
}

// remoteHint tells what renders that which is not rendered here.
const remoteHint = "; a remote renderer can (vllm-render, sglang-renderer or trtllm-render)"

// judge makes an error of the packages below what callers of a Renderer match.
func judge(err error) error {
	var body *profile.Error
	var template *chat.Error
	switch {
	case errors.Is(err, token.ErrTooLong):
		return failf(render.ReasonTooLarge, "%v", err)
	case errors.Is(err, token.ErrBadText):
		return failf(render.ReasonBadRequest, "%v", err)
	case errors.Is(err, token.ErrBadFile):
		return failf(render.ReasonUnusable, "%v", err)
	case !errors.As(err, &body):
		return err
	}
	out := &render.Error{Reason: render.ReasonBadRequest, Detail: body.Reason + ": " + body.Detail}
	switch {
	case errors.Is(err, profile.ErrNotExact):
		out.Reason, out.Detail = render.ReasonNotExact, out.Detail+remoteHint
	case body.Reason == profile.ReasonModel:
		out.Reason = render.ReasonUnknownModel
	}
	if errors.As(err, &template) {
		out.Message = template.Message // the template's own words: for the sender alone
	}
	return out
}

// skipsPrefixCache says whether vLLM reads no prefix cache for the body: it is asked for log probabilities of the prompt
// (vllm/sampling_params.py, skip_reading_prefix_cache), by their own name or, with echo, by those of the answer.
func skipsPrefixCache(body []byte) bool {
	asked := make(map[string]bool)
	// The body is known to be an object.
	_ = render.EachMember(body, func(m render.Member) error {
		switch m.Name {
		case "prompt_logprobs", "logprobs", "top_logprobs":
			asked[m.Name] = string(m.Value) != "null" && string(m.Value) != "false"
		case "echo":
			asked[m.Name] = string(m.Value) == "true"
		}
		return nil
	})
	return asked["prompt_logprobs"] || asked["echo"] && (asked["logprobs"] || asked["top_logprobs"])
}
