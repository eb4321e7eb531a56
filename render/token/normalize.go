package token

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// normalizer changes a text before it is split. It has no state.
type normalizer interface {
	normalize(s string, m *matcher) string
}

// maxSteps bounds the normalizers and the pre-tokenizers of a file, each; real ones have up to 5.
const maxSteps = 32

// normalizers are the steps of a file, flattened.
type normalizers struct {
	steps []normalizer
	// shifts: the first character of the result may stand for a later one of the text. Metaspace's "first" asks that,
	// and it is not followed here.
	shifts bool
}

// What a normalizer may add per character, and what a text may grow to; real files write a space as three bytes.
const (
	maxInsert     = 16
	maxNormalized = 3 * MaxText
)

func (n *normalizers) apply(s string, m *matcher) (string, error) {
	for _, step := range n.steps {
		if s = step.normalize(s, m); len(s) > maxNormalized {
			return "", fmt.Errorf("%w: %d bytes when normalized, over %d", ErrTooLong, len(s), maxNormalized)
		}
	}
	return s, nil
}

func (n *normalizers) parse(raw json.RawMessage) error {
	kind, err := kindOf(raw)
	if err != nil || kind == "" {
		return err
	}
	if len(n.steps) >= maxSteps {
		return unsupported("more than %d normalizers", maxSteps)
	}
	switch kind {
	case "Sequence":
		return n.parseSequence(raw)
	case "NFC", "NFD", "NFKC", "NFKD":
		if err := strictly(raw, &struct{ Type string }{}); err != nil {
			return err
		}
		n.steps = append(n.steps, newNormalForm(strings.Contains(kind, "K"), strings.HasSuffix(kind, "C")))
	case "Prepend":
		var v struct {
			Type    string
			Prepend *string
		}
		if err := strictly(raw, &v); err != nil {
			return err
		}
		if v.Prepend == nil || len(*v.Prepend) > maxInsert {
			return unsupported("normalizer Prepend of nothing, or of more than %d bytes", maxInsert)
		}
		n.shifts = true
		n.steps = append(n.steps, prepend(*v.Prepend))
	case "Replace":
		return n.parseReplace(raw)
	case "Strip":
		return n.parseStrip(raw)
	case "ByteLevel":
		if err := strictly(raw, &struct{ Type string }{}); err != nil {
			return err
		}
		n.steps = append(n.steps, byteLetters{})
	default:
		return unsupported("normalizer %.40q", kind)
	}
	return nil
}

func (n *normalizers) parseSequence(raw json.RawMessage) error {
	var v struct {
		Type        string
		Normalizers []json.RawMessage
	}
	if err := strictly(raw, &v); err != nil {
		return err
	}
	if len(v.Normalizers) > maxSteps {
		return unsupported("more than %d normalizers", maxSteps)
	}
	for _, part := range v.Normalizers {
		if kind, err := kindOf(part); err != nil || kind == "" || kind == "Sequence" {
			return unsupported("normalizer %.40q in a sequence", kind)
		}
		if err := n.parse(part); err != nil {
			return err
		}
	}
	return nil
}

func (n *normalizers) parseStrip(raw json.RawMessage) error {
	var v struct {
		Type  string
		Left  *bool `json:"strip_left"`
		Right *bool `json:"strip_right"`
	}
	if err := strictly(raw, &v); err != nil {
		return err
	}
	if v.Left == nil || v.Right == nil {
		return badFile("normalizer Strip says not which side")
	}
	n.shifts = true
	n.steps = append(n.steps, &strip{*v.Left, *v.Right, newCharset(tables().sets["whitespace"])})
	return nil
}

func (n *normalizers) parseReplace(raw json.RawMessage) error {
	var v struct {
		Type    string
		Pattern textPattern
		Content *string
	}
	if err := strictly(raw, &v); err != nil {
		return err
	}
	if v.Content == nil || len(*v.Content) > maxInsert {
		return unsupported("normalizer Replace by nothing, or by more than %d bytes", maxInsert)
	}
	if v.Pattern.text != "" {
		n.shifts = n.shifts || utf8.RuneCountInString(v.Pattern.text) != 1 || *v.Content == ""
		n.steps = append(n.steps, &replaceText{v.Pattern.text, *v.Content})
		return nil
	}
	p, err := v.Pattern.compile()
	if err != nil {
		return err
	}
	n.shifts = true
	n.steps = append(n.steps, &replacePattern{p, *v.Content})
	return nil
}

// prepend goes before every text that is not empty.
type prepend string

func (p prepend) normalize(s string, _ *matcher) string {
	if s == "" {
		return s
	}
	return string(p) + s
}

type replaceText struct{ text, by string }

func (r *replaceText) normalize(s string, _ *matcher) string {
	return strings.ReplaceAll(s, r.text, r.by)
}

type replacePattern struct {
	pattern *pattern
	by      string
}

func (r *replacePattern) normalize(s string, m *matcher) string {
	var out strings.Builder
	done := 0
	for done < len(s) {
		start, end, ok := m.find(r.pattern, s, done)
		if !ok {
			break
		}
		out.WriteString(s[done:start])
		out.WriteString(r.by)
		done = end
	}
	if done == 0 {
		return s
	}
	out.WriteString(s[done:])
	return out.String()
}

type strip struct {
	left, right bool
	space       *charset
}

func (t *strip) normalize(s string, _ *matcher) string {
	if t.left {
		s = strings.TrimLeftFunc(s, t.space.has)
	}
	if t.right {
		s = strings.TrimRightFunc(s, t.space.has)
	}
	return s
}

func (n *normalizers) size() int64 {
	size := int64(0)
	for _, step := range n.steps {
		switch s := step.(type) {
		case *normalForm:
			size += s.moved.size()
		case *replacePattern:
			size += s.pattern.bytes
		case *strip:
			size += s.space.size()
		}
	}
	return size
}
