package profile

import (
	"context"
	"strings"

	"github.com/kvscout/kvscout/render/chat"
	"github.com/kvscout/kvscout/render/pyval"
)

// continueTag marks the end of the message to continue (transformers, render_jinja_template).
const continueTag = "CONTINUE_FINAL_MESSAGE_TAG "

// continued renders a conversation whose last message is open: the tag is put behind its text, and what is rendered
// ends where the tag stands.
func continued(ctx context.Context, t *chat.Template, vars chat.Vars, messages []pyval.Value) (string, error) {
	last := messages[len(messages)-1].(*pyval.Dict).Copy()
	messages = append(append([]pyval.Value(nil), messages[:len(messages)-1]...), last)
	content, _ := last.Get("content")
	var final string
	switch c := content.(type) {
	case string:
		final = c
		last.Set("content", c+continueTag)
	case *pyval.List:
		tagged, text, ok := tagParts(c)
		if !ok {
			return "", refused(ReasonMessages, "no text to continue in the final message")
		}
		final = text
		last.Set("content", tagged)
	default:
		return "", refused(ReasonMessages, "no content to continue in the final message")
	}
	if !strings.Contains(t.Source(), "content") {
		return "", refused(ReasonTemplate, "the template has no content to continue")
	}
	vars["messages"] = &pyval.List{Items: messages}
	text, err := execute(ctx, t, vars)
	if err != nil {
		return "", err
	}
	tag := strings.TrimRight(continueTag, " ")
	at := strings.LastIndex(text, tag)
	if at < 0 || !strings.Contains(text, strings.TrimFunc(final, pyval.IsSpace)) {
		return "", refused(ReasonMessages, "the final message does not appear in the rendered chat")
	}
	if strings.HasPrefix(text[at:], continueTag) {
		return text[:at], nil
	}
	return strings.TrimRightFunc(text[:at], pyval.IsSpace), nil
}

// tagParts puts the tag behind the last part with a text.
func tagParts(parts *pyval.List) (tagged *pyval.List, text string, ok bool) {
	items := append([]pyval.Value(nil), parts.Items...)
	for i := len(items) - 1; i >= 0; i-- {
		part, isDict := items[i].(*pyval.Dict)
		if !isDict {
			return nil, "", false
		}
		v, has := part.Get("text")
		if !has {
			continue
		}
		s, isText := v.(string)
		if !isText {
			return nil, "", false
		}
		part = part.Copy()
		part.Set("text", s+continueTag)
		items[i] = part
		return &pyval.List{Items: items}, s, true
	}
	return nil, "", false
}
