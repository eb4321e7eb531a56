package profile

import (
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/kvscout/kvscout/render/chat"
	"github.com/kvscout/kvscout/render/pyval"
)

// sglangMessages makes the conversation of the template: model_dump of each message without what is None
// (serving_chat.py, _apply_jinja_template; process_content_for_template_format).
func sglangMessages(raw pyval.Value, parts bool, t *chat.Template) ([]pyval.Value, error) {
	list, ok := raw.(*pyval.List)
	if !ok || len(list.Items) == 0 {
		return nil, refused(ReasonMessages, "messages must be a list with at least one message")
	}
	out := make([]pyval.Value, len(list.Items))
	calls := 0
	for i, item := range list.Items {
		msg, ok := item.(*pyval.Dict)
		if !ok {
			return nil, refused(ReasonMessages, "message %d is no object", i)
		}
		made, n, err := sglangMessage(msg, i, parts)
		if err != nil {
			return nil, err
		}
		out[i] = made
		calls = max(calls, n)
	}
	if calls > 1 && strings.Contains(t.Source(), "tool_call_id") {
		return nil, notExact(ReasonUnusual, "sglang may put results of parallel tool calls in another order")
	}
	return out, nil
}

func sglangMessage(msg *pyval.Dict, i int, parts bool) (out *pyval.Dict, calls int, err error) {
	role := stringField(msg, "role")
	if role != "user" {
		role = strings.ToLower(role)
	}
	if !slices.Contains([]string{"user", "system", "assistant", "tool", "function", "developer"}, role) {
		return nil, 0, notExact(ReasonUnusual, "message %d: role", i)
	}
	v, _ := msg.Get("content")
	content, isList, err := sglangContent(v, i, parts && role != "tool")
	if err != nil {
		return nil, 0, err
	}
	if role == "user" {
		if isNone(v) {
			return nil, 0, refused(ReasonMessages, "message %d has no content", i)
		}
		return pyval.NewDict("role", role, "content", content), 0, nil
	}
	out = pyval.NewDict("role", role)
	if !isList || !parts {
		out.Set("content", content)
	}
	for _, field := range []string{"tool_call_id", "name", "phase", "reasoning_content"} {
		value, _ := msg.Get(field)
		if isNone(value) {
			continue
		}
		if aString(value) != good || field == "phase" {
			return nil, 0, notExact(ReasonUnusual, "message %d: %s", i, field)
		}
		out.Set(field, value)
	}
	for _, field := range []string{"tools", "prefix"} {
		if value, _ := msg.Get(field); !isNone(value) {
			return nil, 0, notExact(ReasonUnusual, "message %d: %s", i, field)
		}
	}
	raw, _ := msg.Get("tool_calls")
	if !isNone(raw) {
		list, err := sglangCalls(raw, i, role)
		if err != nil {
			return nil, 0, err
		}
		out.Set("tool_calls", list)
		calls = len(list.Items)
	}
	if isList && parts { // a list of parts goes to the end
		out.Set("content", content)
	}
	return out, calls, nil
}

// sglangContent makes the content: parts of text as they are, or joined by blanks.
func sglangContent(v pyval.Value, i int, parts bool) (content pyval.Value, isList bool, err error) {
	switch v := v.(type) {
	case nil, pyval.None:
		return "", false, nil
	case string:
		return v, false, nil
	case *pyval.List:
		made := &pyval.List{}
		var texts []string
		for _, p := range v.Items {
			part, ok := p.(*pyval.Dict)
			if !ok {
				return nil, false, refused(ReasonMessages, "message %d: a part that is no object", i)
			}
			kind := stringField(part, "type")
			if err := checkMedia(part, kind); err != nil {
				return nil, false, err
			}
			text, _ := part.Get("text")
			if kind != "text" || aString(text) != good {
				return nil, false, notExact(ReasonUnusual, "message %d: a part that is no text", i)
			}
			made.Items = append(made.Items, pyval.NewDict("type", "text", "text", text))
			texts = append(texts, text.(string))
		}
		if parts {
			return made, true, nil
		}
		return strings.Join(texts, " "), true, nil
	}
	return nil, false, refused(ReasonMessages, "message %d: content must be a text or a list", i)
}

// sglangCalls is model_dump of the tool calls, arguments read by orjson.
func sglangCalls(raw pyval.Value, i int, role string) (*pyval.List, error) {
	list, ok := raw.(*pyval.List)
	if !ok {
		return nil, refused(ReasonMessages, "message %d: tool_calls must be a list", i)
	}
	if role != "assistant" {
		return nil, notExact(ReasonUnusual, "message %d: tool_calls of this role", i)
	}
	out := &pyval.List{}
	for _, item := range list.Items {
		call, _ := item.(*pyval.Dict)
		if call == nil {
			return nil, refused(ReasonMessages, "message %d: a tool call that is no object", i)
		}
		f, _ := call.Get("function")
		function, ok := f.(*pyval.Dict)
		if !ok {
			return nil, refused(ReasonMessages, "message %d: a tool call without function", i)
		}
		id, name, kind := orNone(call, "id"), orNone(function, "name"), orNone(call, "type")
		index, arguments := orNone(call, "index"), orNone(function, "arguments")
		if optional(aString)(id) != good || optional(aString)(name) != good || !isNone(kind) && kind != pyval.Value("function") {
			return nil, refused(ReasonMessages, "message %d: a tool call of a wrong form", i)
		}
		if _, isInt := index.(int64); !isNone(index) && !isInt {
			return nil, notExact(ReasonUnusual, "message %d: index of a tool call", i)
		}
		if text, ok := arguments.(string); ok {
			v, err := pyval.ParseString(text)
			d, isDict := v.(*pyval.Dict)
			if err != nil || !isDict {
				return nil, refused(ReasonMessages, "message %d: arguments of a tool call are no JSON object", i)
			}
			if !plainNumbers(d) {
				return nil, notExact(ReasonUnusual, "message %d: numbers that orjson reads in its own way", i)
			}
			arguments = d
		} else if aDict(arguments) != good && !isNone(arguments) {
			return nil, refused(ReasonMessages, "message %d: arguments of a tool call", i)
		}
		out.Items = append(out.Items, pyval.NewDict("id", id, "index", index, "type", "function",
			"function", pyval.NewDict("name", name, "arguments", arguments)))
	}
	return out, nil
}

func orNone(d *pyval.Dict, name string) pyval.Value {
	if v, ok := d.Get(name); ok {
		return v
	}
	return pyval.None{}
}

// plainNumbers reports whether orjson and Python's json agree on v: no huge integers, no NaN or infinity, no lone
// surrogates.
func plainNumbers(v pyval.Value) bool {
	switch v := v.(type) {
	case *big.Int:
		return false
	case float64:
		return !math.IsNaN(v) && !math.IsInf(v, 0)
	case string:
		return !pyval.HasSurrogate(v)
	case *pyval.List:
		return !slices.ContainsFunc(v.Items, func(item pyval.Value) bool { return !plainNumbers(item) })
	case *pyval.Dict:
		for _, e := range v.Entries() {
			if !plainNumbers(e.Key) || !plainNumbers(e.Value) {
				return false
			}
		}
	}
	return true
}

// sglangTools refuses tools: since 0.5.10 their form depends on the version (key order, fields left out), and their
// schemas are checked and rewritten. A request without tools, or with tool_choice none, has none.
func sglangTools(d *pyval.Dict) (*pyval.List, error) {
	raw, _ := d.Get("tools")
	choice, _ := d.Get("tool_choice")
	if list, ok := raw.(*pyval.List); !isNone(raw) && !(ok && len(list.Items) == 0) && choice != pyval.Value("none") {
		return nil, notExact(ReasonTools, "the form of tools depends on sglang's version")
	}
	if !isNone(choice) && choice != pyval.Value("none") && choice != pyval.Value("auto") {
		return nil, refused(ReasonTools, "tool_choice without tools")
	}
	return nil, nil
}
