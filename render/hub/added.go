package hub

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/render/pyval"
)

// addedToken is an entry of added_tokens in a tokenizer.json.
type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Lstrip     bool   `json:"lstrip"`
	Rstrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// maxAdded bounds added tokens. Gemma 3 has 6415.
const maxAdded = 1 << 18

// addTokens edits the added tokens of a tokenizer.json into those that transformers has in the end: those of the file, or
// for a class that builds its own (own) those of added_tokens_decoder if there is one; then whatever of
// added_tokens_decoder and of the special tokens is still missing.
func addTokens(tokenizer []byte, c *config, own bool, specials []string) ([]byte, error) {
	raw, err := rawAdded(tokenizer)
	if err != nil {
		return nil, err
	}
	decoder, given, err := c.decoder()
	if err != nil {
		return nil, err
	}
	kept, changed := raw, false
	if own {
		kept = nil
		if !given {
			decoder = slices.Clone(raw)
			slices.SortStableFunc(decoder, func(a, b addedToken) int { return a.ID - b.ID })
		}
	}
	again := make(map[string]addedToken, len(decoder))
	for _, t := range decoder {
		again[t.Content] = t
	}
	have := make(map[string]bool, len(kept))
	for i, t := range kept {
		have[t.Content] = true
		if d, ok := again[t.Content]; ok && !d.alike(t) { // added once more, with other flags, under its id
			d.ID = t.ID
			kept[i], changed = d, true
		}
	}
	var more []addedToken
	for _, t := range decoder {
		more = appendNew(more, have, t)
	}
	for _, text := range specials {
		more = appendNew(more, have, addedToken{Content: text, Special: true})
	}
	if len(kept)+len(more) > maxAdded {
		return nil, fmt.Errorf("%w: %d added tokens, at most %d", ErrUnsupported, len(kept)+len(more), maxAdded)
	}
	if len(more) == 0 && !changed {
		return tokenizer, nil
	}
	if err := number(tokenizer, kept, more); err != nil {
		return nil, err
	}
	text, err := json.Marshal(slices.Concat(kept, more))
	if err != nil {
		return nil, fmt.Errorf("%w: added tokens: %w", ErrBadFile, err)
	}
	return render.Edit{Set: map[string]json.RawMessage{"added_tokens": text}}.Apply(tokenizer)
}

// alike says whether the two are found in texts alike.
func (t addedToken) alike(o addedToken) bool {
	o.ID, o.Special = t.ID, t.Special
	return t == o
}

func appendNew(list []addedToken, have map[string]bool, t addedToken) []addedToken {
	if t.Content == "" || have[t.Content] {
		return list
	}
	have[t.Content] = true
	return append(list, t)
}

// rawAdded are the added tokens of a tokenizer.json.
func rawAdded(tokenizer []byte) ([]addedToken, error) {
	var out []addedToken
	err := render.EachMember(tokenizer, func(m render.Member) error {
		if m.Name != "added_tokens" {
			return nil
		}
		out = nil
		return json.Unmarshal(m.Value, &out)
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBadFile, fileTokenizer, err)
	}
	return out, nil
}

// decoder are the tokens of added_tokens_decoder, by their number; given says whether there is one.
func (c *config) decoder() (out []addedToken, given bool, err error) {
	v, ok := c.Get("added_tokens_decoder")
	if !ok {
		return nil, false, nil
	}
	d, ok := v.(*pyval.Dict)
	if !ok {
		return nil, false, fmt.Errorf("%w: added_tokens_decoder is no object", ErrBadFile)
	}
	for _, e := range d.Entries() {
		key, _ := e.Key.(string)
		id, err := strconv.Atoi(key)
		token, ok := e.Value.(*pyval.Dict)
		if err != nil || !ok {
			return nil, false, fmt.Errorf("%w: an entry of added_tokens_decoder is no token", ErrBadFile)
		}
		fields := &config{token}
		special := fields.truth("special", false)
		out = append(out, addedToken{
			ID: id, Content: fields.text("content"), Special: special, Normalized: fields.truth("normalized", !special),
			SingleWord: fields.truth("single_word", false), Lstrip: fields.truth("lstrip", false), Rstrip: fields.truth("rstrip", false),
		})
	}
	slices.SortStableFunc(out, func(a, b addedToken) int { return a.ID - b.ID })
	return out, true, nil
}

// number gives more the ids that the library gives them: that of the vocabulary, else the next one behind everything
// (tokenizers/src/tokenizer/added_vocabulary.rs, add_tokens).
func number(tokenizer []byte, kept, more []addedToken) error {
	vocabulary, err := vocabularyOf(tokenizer)
	if err != nil {
		return err
	}
	last := -1
	for _, t := range kept {
		last = max(last, t.ID)
	}
	for i := range more {
		id, ok := vocabulary[more[i].Content]
		if !ok {
			id = max(last+1, len(vocabulary))
		}
		more[i].ID = id
		last = max(last, id)
	}
	return nil
}

func vocabularyOf(tokenizer []byte) (map[string]int, error) {
	out := make(map[string]int)
	err := render.EachMember(tokenizer, func(m render.Member) error {
		if m.Name != "model" {
			return nil
		}
		return render.EachMember(m.Value, func(inner render.Member) error {
			if inner.Name != "vocab" {
				return nil
			}
			if len(inner.Value) > 0 && inner.Value[0] != '{' {
				return fmt.Errorf("%w: a vocabulary that is no object", ErrUnsupported)
			}
			return json.Unmarshal(inner.Value, &out)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBadFile, fileTokenizer, err)
	}
	return out, nil
}
