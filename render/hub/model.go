package hub

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kvscout/kvscout/render/pyval"
)

// Model is what the files of a directory say of a model.
type Model struct {
	// Class is the class that transformers takes for the tokenizer.
	Class string
	// Type is model_type of config.json; empty without one.
	Type string
	// Tokenizer is the text of a tokenizer.json that describes what that class runs.
	Tokenizer []byte
	// Specials are the special tokens that templates see as variables, in transformers' order.
	Specials []Special
	// Templates are the chat templates. One without a name is the only one.
	Templates []Template
}

// Special is a special token with the name of its variable, such as "bos_token".
type Special struct{ Name, Text string }

// Template is a chat template.
type Template struct{ Name, Text string }

// specialNames are transformers' names of special tokens, in its order (SPECIAL_TOKENS_ATTRIBUTES).
var specialNames = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// Open makes a model of files. It errs with ErrBadFile or ErrUnsupported.
func Open(files Files) (*Model, error) {
	if files[fileTekken] != nil {
		return nil, fmt.Errorf("%w: %s needs mistral-common", ErrUnsupported, fileTekken)
	}
	c, err := files.object(fileConfig)
	if err != nil {
		return nil, err
	}
	network, err := files.object(fileModel)
	if err != nil {
		return nil, err
	}
	m := &Model{Type: network.text("model_type")}
	if err := checkOwnCode(c, m.Type); err != nil {
		return nil, err
	}
	if c.truth("split_special_tokens", false) {
		return nil, fmt.Errorf("%w: split_special_tokens", ErrUnsupported)
	}
	m.Class = classOf(c.text("tokenizer_class"), network.text("tokenizer_class"), m.Type, network.text("model_name"))
	if err := m.tokenizer(files, c); err != nil {
		return nil, err
	}
	m.Templates, err = templates(files, c)
	return m, err
}

// object reads a file that holds a JSON object; an empty one if it does not exist.
func (f Files) object(name string) (*config, error) {
	if f[name] == nil {
		return &config{pyval.NewDict()}, nil
	}
	v, err := pyval.Parse(f[name])
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBadFile, name, err)
	}
	d, ok := v.(*pyval.Dict)
	if !ok {
		return nil, fmt.Errorf("%w: %s is no object", ErrBadFile, name)
	}
	return &config{d}, nil
}

// checkOwnCode refuses a tokenizer with Python code of its own, unless transformers is known to ignore that.
func checkOwnCode(c *config, modelType string) error {
	v, _ := c.Get("auto_map")
	code := false
	switch v := v.(type) {
	case *pyval.Dict:
		own, _ := v.Get("AutoTokenizer")
		_, none := own.(pyval.None)
		code = own != nil && !none
	case *pyval.List:
		code = true
	}
	if code && !slices.Contains(classes().Incorrect, modelType) {
		return fmt.Errorf("%w: the tokenizer has code of its own (auto_map)", ErrUnsupported)
	}
	return nil
}

// tokenizer finds the tokenizer and the special tokens.
func (m *Model) tokenizer(files Files, c *config) error {
	var b build
	construct, own := builds[m.Class]
	switch {
	case own:
		b = construct(c)
	case m.Class != backend:
		return fmt.Errorf("%w: tokenizer class %.60q builds its tokenizer by code (known are %s, and those that take tokenizer.json as it is)",
			ErrUnsupported, m.Class, knownBuilds())
	}
	text := files[fileTokenizer]
	var err error
	if own {
		if text, err = rebuild(text, &b); err != nil {
			return err
		}
	}
	named, extra, err := specials(files, c, b.specials)
	if err != nil {
		return err
	}
	m.Specials = named
	for _, s := range slices.Backward(named) {
		extra = slices.Insert(extra, 0, s.Text)
	}
	m.Tokenizer, err = addTokens(text, c, own, extra)
	return err
}

// specials are the special tokens with a name, and the texts of those without.
func specials(files Files, c *config, defaults map[string]string) (named []Special, extra []string, err error) {
	merged := &config{c.Copy()}
	if _, modern := c.Get("added_tokens_decoder"); !modern { // the older file counts only then
		old, err := files.object(fileSpecials)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range old.Entries() {
			merged.Set(e.Key.(string), e.Value)
		}
	}
	for _, name := range specialNames {
		if text := merged.special(name, defaults); text != "" {
			named = append(named, Special{name, text})
		}
	}
	add := func(name, text string) {
		if text != "" && !slices.ContainsFunc(named, func(s Special) bool { return s.Name == name }) {
			named = append(named, Special{name, text})
		}
	}
	for _, e := range merged.Entries() {
		if name, _ := e.Key.(string); strings.HasSuffix(name, "_token") && !slices.Contains(specialNames, name) {
			add(name, tokenText(e.Value))
		}
	}
	more, _ := merged.Get("extra_special_tokens")
	if !pyval.Truth(more) || more == nil {
		more, _ = merged.Get("additional_special_tokens")
	}
	switch more := more.(type) {
	case *pyval.Dict:
		for _, e := range more.Entries() {
			name, _ := e.Key.(string)
			add(name, tokenText(e.Value))
		}
	case *pyval.List:
		for _, v := range more.Items {
			extra = append(extra, tokenText(v))
		}
	}
	return named, extra, nil
}

// templates are those of files of their own, else those of the configuration.
func templates(files Files, c *config) ([]Template, error) {
	var out []Template
	if text, ok := files[fileTemplate]; ok {
		out = append(out, Template{"default", lines(text)})
	}
	for name, text := range files {
		if dir, file := filepath.Split(name); dir != "" {
			out = append(out, Template{strings.TrimSuffix(file, ".jinja"), lines(text)})
		}
	}
	if len(out) > 0 {
		if len(out) == 1 && out[0].Name == "default" {
			out[0].Name = ""
		}
		slices.SortFunc(out, func(a, b Template) int { return strings.Compare(a.Name, b.Name) })
		return out, nil
	}
	v, _ := c.Get("chat_template")
	switch v := v.(type) {
	case string:
		return []Template{{"", v}}, nil
	case *pyval.List:
		for _, item := range v.Items {
			d, ok := item.(*pyval.Dict)
			if !ok {
				return nil, fmt.Errorf("%w: an entry of chat_template is no object", ErrBadFile)
			}
			entry := &config{d}
			out = append(out, Template{entry.text("name"), entry.text("template")})
		}
		return out, nil
	default:
		return nil, nil
	}
}

// lines is a file as Python reads text: every line ends with LF.
func lines(text []byte) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(text))
}

// Template is the template of that name, the unnamed one for any name; false if there is none.
func (m *Model) Template(name string) (string, bool) {
	for _, t := range m.Templates {
		if t.Name == name || t.Name == "" {
			return t.Text, true
		}
	}
	return "", false
}
