package profile

import (
	"errors"
	"strings"

	"github.com/kvscout/kvscout/render/pyval"
)

// vllmMessages makes the conversation of the template from the messages of a body (vllm/renderers/chat_utils.py, after
// the validation of ChatCompletionRequest). parts says that contents are lists.
func vllmMessages(raw pyval.Value, parts bool) ([]pyval.Value, error) {
	list, ok := raw.(*pyval.List)
	if !ok {
		return nil, refused(ReasonMessages, "messages must be a list")
	}
	out := make([]pyval.Value, len(list.Items))
	for i, item := range list.Items {
		msg, ok := item.(*pyval.Dict)
		if !ok {
			return nil, refused(ReasonMessages, "message %d is no object", i)
		}
		m := vllmMessage{in: msg, at: i, parts: parts}
		made, err := m.make()
		if err != nil {
			return nil, err
		}
		out[i] = made
	}
	return out, nil
}

type vllmMessage struct {
	in    *pyval.Dict
	at    int
	role  string
	parts bool
}

func (m *vllmMessage) refuse(what string) error {
	return refused(ReasonMessages, "message %d: %s", m.at, what)
}

func (m *vllmMessage) unusual(what string) error {
	return notExact(ReasonUnusual, "message %d: %s", m.at, what)
}

func (m *vllmMessage) make() (*pyval.Dict, error) {
	v, _ := m.in.Get("role")
	role, ok := v.(string)
	if !ok {
		return nil, m.refuse("role must be a text")
	}
	m.role = role
	content, err := m.content()
	if err != nil {
		return nil, err
	}
	out := pyval.NewDict("role", role, "content", content)
	if role == "assistant" {
		err = m.assistant(out)
	} else if calls, _ := m.in.Get("tool_calls"); !isNone(calls) {
		err = m.unusual("tool_calls of this role")
	}
	if err == nil {
		err = m.names(out)
	}
	if err != nil {
		return nil, err
	}
	if task, ok := m.in.Get("task"); ok && aString(task) == good {
		out.Set("task", task)
	}
	if role == "developer" {
		if tools, _ := m.in.Get("tools"); !isNone(tools) {
			return nil, m.unusual("tools of a developer message")
		}
		out.Set("tools", pyval.None{})
	}
	return out, nil
}

// names copies tool_call_id and name.
func (m *vllmMessage) names(out *pyval.Dict) error {
	if id, ok := m.in.Get("tool_call_id"); ok && m.role == "tool" {
		if optional(aString)(id) != good {
			return m.refuse("tool_call_id must be a text")
		}
		out.Set("tool_call_id", id)
	}
	name, ok := m.in.Get("name")
	if !ok {
		return nil
	}
	if aString(name) != good {
		return m.refuse("name must be a text")
	}
	out.Set("name", name)
	return nil
}

// content makes the content: a text, or a list of parts.
func (m *vllmMessage) content() (pyval.Value, error) {
	v, there := m.in.Get("content")
	var made []pyval.Value // dicts with type and text
	switch c := v.(type) {
	case string:
		made = append(made, pyval.NewDict("type", "text", "text", c))
	case *pyval.List:
		for _, p := range c.Items {
			part, err := m.part(p)
			if err != nil {
				return nil, err
			}
			if part != nil {
				made = append(made, part)
			}
		}
	default:
		if there && !(isNone(v) && (m.role == "assistant" || m.role == "function")) {
			return nil, m.refuse("content must be a text or a list")
		}
	}
	if m.role == "system" {
		made = withoutBilling(made)
	}
	if m.parts && m.role != "tool" {
		return &pyval.List{Items: made}, nil
	}
	var texts []string
	for _, p := range made {
		// An empty text is no part of a joined content, but one of a list of parts.
		if text := stringField(p.(*pyval.Dict), "text"); text != "" || m.parts {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n"), nil
}

// textTypes are the types of parts that are texts, and where the text is.
var textTypes = map[string]string{"text": "text", "refusal": "refusal", "thinking": "thinking"}

// part makes one part: its type and text, then what else it has that is no field of any part.
func (m *vllmMessage) part(v pyval.Value) (pyval.Value, error) {
	part, ok := v.(*pyval.Dict)
	if !ok {
		return nil, m.unusual("a part of the content that is no object")
	}
	kind := stringField(part, "type")
	if err := checkMedia(part, kind); err != nil {
		return nil, err
	}
	field := textTypes[kind]
	if field == "" {
		return nil, m.unusual("a part of an unknown type")
	}
	text, _ := part.Get(field)
	if aString(text) != good {
		return nil, m.refuse("a part without its text")
	}
	out := pyval.NewDict("type", "text", "text", text)
	for _, e := range part.Entries() {
		if name := e.Key.(string); !partFields[name] {
			out.Set(name, e.Value)
		}
	}
	return out, nil
}

// partFields are the fields of all kinds of parts (_KNOWN_CONTENT_PART_FIELDS): they do not reach the template.
var partFields = map[string]bool{
	"audio_embeds": true, "audio_url": true, "closed": true, "data": true, "file": true, "image_embeds": true, "image_pil": true,
	"image_url": true, "input_audio": true, "name": true, "prompt_cache_breakpoint": true, "refusal": true, "text": true,
	"thinking": true, "type": true, "uuid": true, "video_embeds": true, "video_url": true,
}

// checkMedia refuses parts that are no text.
func checkMedia(part *pyval.Dict, kind string) error {
	media := func(name string) bool {
		return strings.Contains(name, "image") || strings.Contains(name, "audio") || strings.Contains(name, "video") ||
			name == "file" || name == "prompt_embeds"
	}
	found := media(kind)
	for _, e := range part.Entries() {
		name := e.Key.(string)
		found = found || media(name) || name == "uuid"
	}
	if found {
		return notExact(ReasonMultimodal, "content that is no text needs a remote renderer")
	}
	return nil
}

const billingHeader = "x-anthropic-billing-header"

// withoutBilling drops the line that Claude Code puts before system texts (_strip_claude_code_billing_header).
func withoutBilling(parts []pyval.Value) []pyval.Value {
	var out []pyval.Value
	for _, p := range parts {
		part := p.(*pyval.Dict)
		text := stringField(part, "text")
		if strings.HasPrefix(text, billingHeader) {
			_, rest, _ := strings.Cut(text, "\n")
			if rest == "" {
				continue
			}
			part = part.Copy()
			part.Set("text", rest)
		}
		out = append(out, part)
	}
	return out
}

// assistant copies tool calls and reasoning.
func (m *vllmMessage) assistant(out *pyval.Dict) error {
	v, _ := m.in.Get("tool_calls")
	if !isNone(v) {
		list, ok := v.(*pyval.List)
		if !ok {
			return m.refuse("tool_calls must be a list")
		}
		calls := &pyval.List{}
		for _, item := range list.Items {
			call, err := m.toolCall(item)
			if err != nil {
				return err
			}
			calls.Items = append(calls.Items, call)
		}
		if len(calls.Items) > 0 {
			out.Set("tool_calls", calls)
		}
	}
	reasoning, _ := m.in.Get("reasoning")
	if isNone(reasoning) {
		reasoning, _ = m.in.Get("reasoning_content")
	}
	if isNone(reasoning) {
		return nil
	}
	if aString(reasoning) != good {
		return m.unusual("reasoning that is no text")
	}
	out.Set("reasoning", reasoning)
	out.Set("reasoning_content", reasoning)
	return nil
}

// toolCall makes a tool call as pydantic's TypedDict leaves it: id, function, type, then what else there is; in the
// function arguments, name, then what else.
func (m *vllmMessage) toolCall(v pyval.Value) (pyval.Value, error) {
	call, ok := v.(*pyval.Dict)
	if !ok {
		return nil, m.refuse("a tool call that is no object")
	}
	id, _ := call.Get("id")
	f, _ := call.Get("function")
	function, ok := f.(*pyval.Dict)
	if !ok || aString(id) != good || stringField(call, "type") != "function" {
		return nil, m.refuse("a tool call needs id, function and the type function")
	}
	name, _ := function.Get("name")
	text, _ := function.Get("arguments")
	if aString(name) != good || aString(text) != good {
		return nil, m.refuse("a tool call needs name and arguments as texts")
	}
	arguments, err := parseArguments(text.(string))
	if err != nil {
		return nil, m.unusual("arguments of a tool call that are nested too deeply or hold a huge number")
	}
	made := pyval.NewDict("arguments", arguments, "name", name)
	rest(made, function)
	out := pyval.NewDict("id", id, "function", made, "type", "function")
	rest(out, call)
	return out, nil
}

// rest copies what out does not have yet.
func rest(out, in *pyval.Dict) {
	for _, e := range in.Entries() {
		if _, ok := out.Get(e.Key.(string)); !ok {
			out.Set(e.Key.(string), e.Value)
		}
	}
}

// parseArguments reads the arguments of a tool call: what is no JSON object is an empty one (_postprocess_messages).
func parseArguments(text string) (*pyval.Dict, error) {
	v, err := pyval.ParseString(text)
	if errors.Is(err, pyval.ErrTooDeep) || errors.Is(err, pyval.ErrDigits) {
		return nil, err
	}
	if d, ok := v.(*pyval.Dict); ok && err == nil {
		return d, nil
	}
	return &pyval.Dict{}, nil
}
