package profile

import (
	"context"
	"errors"
	"fmt"

	"github.com/kvscout/kvscout/render/chat"
	"github.com/kvscout/kvscout/render/pyval"
)

// Engine is whose rules a body is rendered by.
type Engine uint8

const (
	// VLLM is vLLM 0.32.
	VLLM Engine = iota + 1
	// SGLang is SGLang 0.5.23, the server in Python; requests with tools are not exact yet.
	SGLang
	// TensorRTLLM is TensorRT-LLM's trtllm-render: plain conversations only, the rest is not exact.
	TensorRTLLM
)

func (e Engine) String() string {
	switch e {
	case VLLM:
		return "vllm"
	case SGLang:
		return "sglang"
	case TensorRTLLM:
		return "trtllm"
	}
	return "unknown"
}

// ParseEngine reads what String writes.
func ParseEngine(name string) (Engine, error) {
	for e := VLLM; e <= TensorRTLLM; e++ {
		if e.String() == name {
			return e, nil
		}
	}
	return 0, fmt.Errorf("unknown engine profile %q: vllm, sglang or trtllm", name)
}

// ContentFormat says how a template wants the content of messages.
type ContentFormat uint8

const (
	// FormatAuto: found out from the template.
	FormatAuto ContentFormat = iota
	// FormatString: a text; parts are joined.
	FormatString
	// FormatParts: a list of parts (vLLM's "openai").
	FormatParts
)

// ModelConfig is what a model's files and the engine's flags say. The engine's flags must be told as the workers have
// them: they change tokens.
type ModelConfig struct {
	// Names are the names the engine serves the model by (--served-model-name), adapters included. Empty: any.
	Names []string
	// Template is the chat template; ToolTemplate is the one named "tool_use", nil if there is none.
	Template, ToolTemplate *chat.Template
	// SpecialTokens are bos_token, eos_token and so on, as texts, by name: variables of the template.
	SpecialTokens map[string]string
	// MaxModelLen is the context length in tokens; 0 means not known, and then nothing is refused for its length.
	MaxModelLen int
	// ContentFormat is --chat-template-content-format.
	ContentFormat ContentFormat
	// DefaultTemplateKwargs is --default-chat-template-kwargs; nil if there are none.
	DefaultTemplateKwargs *pyval.Dict
	// ToolParser: the engine runs with --enable-auto-tool-choice and --tool-call-parser. Without, vLLM refuses tools.
	ToolParser bool
	// ExcludeToolsWhenNone is --exclude-tools-when-tool-choice-none.
	ExcludeToolsWhenNone bool
	// ModelType is model_type of config.json. Some types have renderers of their own and are refused.
	ModelType string
}

// Element is one prompt of a body: a text, or token ids as the body gives them.
type Element struct {
	Text string
	// IDs are the tokens if the body gives ids; then there is no Text.
	IDs []uint32
}

// Prompt is what a body asks the model.
type Prompt struct {
	// Elements are the prompts in the body's order: one for a chat.
	Elements []Element
	// AddSpecialTokens: the tokenizer adds its special tokens to a text.
	AddSpecialTokens bool
	// Copies is how often the engine runs each element (n).
	Copies int

	limits limits
}

// Why a body is no prompt.
var (
	// ErrRefused: the engine refuses the body.
	ErrRefused = errors.New("engine refuses the request")
	// ErrNotExact: we cannot be sure of the engine's tokens; a remote renderer can.
	ErrNotExact = errors.New("request cannot be rendered exactly in process")
)

// Error is a body that is no prompt. errors.Is matches ErrRefused or ErrNotExact, and the error behind it.
type Error struct {
	// Reason is one of a fixed set of words, for counters.
	Reason string
	// Detail says what is wrong, without any content of the body.
	Detail string

	kind, cause error
}

func (e *Error) Error() string {
	text := "profile: " + e.kind.Error() + ": " + e.Reason
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap gives what errors.Is matches.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

// The reasons of errors.
const (
	ReasonJSON       = "json"       // no JSON object, or nested too deeply
	ReasonModel      = "model"      // not a served model
	ReasonField      = "field"      // a field has a value that the engine does not take
	ReasonMessages   = "messages"   // a message is not as the engine wants it
	ReasonMultimodal = "multimodal" // images, audio, video, embeddings
	ReasonTools      = "tools"      // tools or tool_choice
	ReasonTemplate   = "template"   // the template raised, failed, or is not there
	ReasonLength     = "length"     // too many tokens, or none
	ReasonUnusual    = "unusual"    // a form whose treatment by the engine we do not know
	ReasonModelType  = "model_type" // a model with a renderer of its own
	ReasonTruncation = "truncation" // a truncation that depends on more than we know
	ReasonLimit      = "limit"      // over a limit of ours
	ReasonSurrogate  = "surrogate"  // text that is not Unicode
)

func refused(reason, format string, args ...any) error {
	return &Error{Reason: reason, Detail: fmt.Sprintf(format, args...), kind: ErrRefused}
}

func notExact(reason, format string, args ...any) error {
	return &Error{Reason: reason, Detail: fmt.Sprintf(format, args...), kind: ErrNotExact}
}

// Chat renders the body of /v1/chat/completions as the engine does. It errs with an *Error, or with ctx's error.
func Chat(ctx context.Context, engine Engine, body []byte, model ModelConfig) (Prompt, error) {
	if err := checkModelType(engine, model.ModelType); err != nil {
		return Prompt{}, err
	}
	d, err := object(body)
	if err != nil {
		return Prompt{}, err
	}
	switch engine {
	case VLLM:
		return vllmChat(ctx, d, model)
	case SGLang:
		return sglangChat(ctx, d, model)
	case TensorRTLLM:
		return trtllmChat(ctx, d, model)
	}
	return Prompt{}, notExact(ReasonUnusual, "unknown engine profile %d", engine)
}

// Completion takes the prompts from the body of /v1/completions as the engine does: no chat template.
func Completion(engine Engine, body []byte, model ModelConfig) (Prompt, error) {
	d, err := object(body)
	if err != nil {
		return Prompt{}, err
	}
	switch engine {
	case VLLM:
		return vllmCompletion(d, model)
	case SGLang:
		return sglangCompletion(d, model)
	case TensorRTLLM:
		return trtllmCompletion(d, model)
	}
	return Prompt{}, notExact(ReasonUnusual, "unknown engine profile %d", engine)
}

// object reads a body as Python does.
func object(body []byte) (*pyval.Dict, error) {
	v, err := pyval.Parse(body)
	switch {
	case errors.Is(err, pyval.ErrTooDeep):
		return nil, &Error{Reason: ReasonJSON, Detail: "nested too deeply", kind: ErrNotExact, cause: err}
	case err != nil:
		return nil, &Error{Reason: ReasonJSON, Detail: err.Error(), kind: ErrRefused, cause: err}
	}
	d, ok := v.(*pyval.Dict)
	if !ok {
		return nil, refused(ReasonJSON, "the body is no object")
	}
	return d, nil
}

// checkModelType refuses models whose prompts are not made by their template (render.md section 7).
func checkModelType(engine Engine, modelType string) error {
	own := map[string]bool{
		"deepseek_v32": true, "deepseek_v4": true, "kimi_k2": true, "kimi_k25": true, "kimi_k3": true, "grok2": true,
		"gpt_oss": engine != SGLang,
	}
	if own[modelType] {
		return notExact(ReasonModelType, "%s renders %s without its template: use a remote renderer", engine, modelType)
	}
	return nil
}

// checkModel refuses a model that is not served.
func checkModel(d *pyval.Dict, model ModelConfig) error {
	v, _ := d.Get("model")
	name, ok := v.(string)
	if !ok || name == "" || len(model.Names) == 0 {
		return nil
	}
	for _, n := range model.Names {
		if n == name {
			return nil
		}
	}
	return refused(ReasonModel, "the model is not served")
}

// execute runs a template and judges its outcome.
func execute(ctx context.Context, t *chat.Template, vars chat.Vars) (string, error) {
	if t == nil {
		return "", refused(ReasonTemplate, "the model has no chat template")
	}
	text, err := t.Execute(ctx, vars)
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	}
	e := &Error{Reason: ReasonTemplate, Detail: err.Error(), kind: ErrRefused, cause: err}
	switch {
	case errors.Is(err, chat.ErrUnsupported):
		e.kind = ErrNotExact
	case errors.Is(err, chat.ErrLimit):
		e.kind, e.Reason = ErrNotExact, ReasonLimit
	}
	return "", e
}

// textPrompt is the prompt of one text, which must be Unicode: no tokenizer takes a lone surrogate.
func textPrompt(text string, l limits) (Prompt, error) {
	if pyval.HasSurrogate(text) {
		return Prompt{}, refused(ReasonSurrogate, "the prompt has a lone surrogate")
	}
	return Prompt{Elements: []Element{{Text: text}}, AddSpecialTokens: l.addSpecial, Copies: l.copies, limits: l}, nil
}
