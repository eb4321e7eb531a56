package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// file is a tokenizer.json. Its truncation and padding are left out on purpose: engines switch them off.
type file struct {
	version               *string
	added                 []addedToken
	normalizer, pre, post json.RawMessage
}

// modelFile is the model of a file.
type modelFile struct {
	Type          *string  `json:"type"`
	Dropout       *float64 `json:"dropout"`
	Unknown       *string  `json:"unk_token"`
	Prefix        *string  `json:"continuing_subword_prefix"`
	Suffix        *string  `json:"end_of_word_suffix"`
	FuseUnknown   *bool    `json:"fuse_unk"`
	ByteFallback  *bool    `json:"byte_fallback"`
	IgnoreMerges  *bool    `json:"ignore_merges"`
	vocab, merges json.RawMessage
}

func readFile(data []byte) (*file, *modelFile, error) {
	if len(data) > MaxFile {
		return nil, nil, unsupported("file of %d bytes, over %d", len(data), MaxFile)
	}
	if !utf8.Valid(data) || loneSurrogate(data) {
		return nil, nil, badFile("not utf-8, or half of a surrogate pair in it")
	}
	if !json.Valid(data) {
		return nil, nil, badFile("not json")
	}
	parts, err := members(data)
	if err != nil {
		return nil, nil, err
	}
	f := &file{normalizer: parts["normalizer"], pre: parts["pre_tokenizer"], post: parts["post_processor"]}
	for name, into := range map[string]any{"version": &f.version, "added_tokens": &f.added} {
		if raw := parts[name]; raw != nil {
			if err := json.Unmarshal(raw, into); err != nil {
				return nil, nil, badJSON(err)
			}
		}
	}
	if f.version != nil && *f.version != "1.0" {
		return nil, nil, badFile("version %.40q", *f.version)
	}
	m, err := readModel(parts["model"])
	return f, m, err
}

func readModel(raw json.RawMessage) (*modelFile, error) {
	parts, err := members(raw)
	if err != nil {
		return nil, err
	}
	m := &modelFile{vocab: parts["vocab"], merges: parts["merges"]}
	var kind string
	if raw := parts["type"]; raw != nil && json.Unmarshal(raw, &kind) != nil || raw != nil && kind != "BPE" {
		return nil, unsupported("model %.40s", raw) // without a type it is BPE, if it has vocab and merges
	}
	delete(parts, "vocab")
	delete(parts, "merges")
	rest, err := json.Marshal(parts)
	if err != nil {
		return nil, badJSON(err)
	}
	if err := strictly(rest, m); err != nil {
		return nil, err
	}
	if m.vocab == nil || m.merges == nil {
		return nil, badFile("model without vocab or merges")
	}
	if m.Dropout != nil && *m.Dropout != 0 {
		return nil, unsupported("dropout %v: ids are random", *m.Dropout)
	}
	if m.Prefix != nil && *m.Prefix != "" || m.Suffix != nil && *m.Suffix != "" {
		return nil, unsupported("continuing_subword_prefix or end_of_word_suffix")
	}
	return m, nil
}

// members are the values of a JSON object, not copied. Of equal names the last one counts.
func members(raw json.RawMessage) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	s := jsonScanner{data: raw}
	err := s.object(func(name string) error {
		if len(out) > maxMembers {
			return unsupported("more than %d members of an object", maxMembers)
		}
		out[name] = s.value()
		return nil
	})
	return out, err
}

// maxMembers bounds what members keeps; real objects have up to 10.
const maxMembers = 100

// kindOf is the type of a component, "" if there is no component. Files of long ago left the type out; the library
// guesses then, and this package does not.
func kindOf(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var v struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return "", badJSON(err)
	}
	if v.Type == "" {
		return "", unsupported("component without a type: %.100s", raw)
	}
	return v.Type, nil
}

// strictly decodes a component. A field that is not known is refused: it may change ids.
func strictly(raw json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if syntax, shape := (*json.SyntaxError)(nil), (*json.UnmarshalTypeError)(nil); errors.As(err, &syntax) || errors.As(err, &shape) || errors.Is(err, io.EOF) {
		return badJSON(err)
	}
	if err != nil {
		return unsupported("%.200s", err) // an unknown field, by the decoder's words; or one of our own
	}
	return nil
}

func badJSON(err error) error { return badFile("%.200s", err) }

// textPattern is {"String": "..."} or {"Regex": "..."}.
type textPattern struct{ text, regex string }

func (p *textPattern) UnmarshalJSON(raw []byte) error {
	var v struct{ String, Regex *string }
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return err
	}
	switch {
	case v.String != nil && v.Regex == nil && *v.String != "":
		p.text = *v.String
	case v.Regex != nil && v.String == nil:
		p.regex = *v.Regex
	default:
		return errors.New("pattern is neither a text nor a regular expression")
	}
	return nil
}

func (p *textPattern) compile() (*pattern, error) { return compilePattern(p.regex) }

// loneSurrogate says whether data has an escape of half a surrogate pair. Go would read it as U+FFFD, the library
// refuses the file.
func loneSurrogate(data []byte) bool {
	for i := 0; ; {
		j := bytes.Index(data[i:], []byte(`\u`))
		if j < 0 {
			return false
		}
		i += j
		back := i
		for back > 0 && data[back-1] == '\\' {
			back--
		}
		if (i-back)%2 != 0 { // the backslash is itself escaped
			i += 2
			continue
		}
		kind := surrogate(data[i:])
		if kind == 'l' || kind == 'h' && surrogate(data[min(i+6, len(data)):]) != 'l' {
			return true
		}
		i += 6
		if kind == 'h' {
			i += 6
		}
		i = min(i, len(data))
	}
}

// surrogate says whether data begins with the escape of a high or a low surrogate.
func surrogate(data []byte) byte {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' || data[2]|0x20 != 'd' {
		return 0
	}
	switch c := data[3] | 0x20; {
	case '8'|0x20 <= c && c <= '9'|0x20, c == 'a', c == 'b':
		return 'h'
	case 'c' <= c && c <= 'f':
		return 'l'
	}
	return 0
}
