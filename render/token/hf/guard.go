//go:build hftokenizers

package hf

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/kvscout/kvscout/render/token"
)

// guarded returns a tokenizer.json that is safe to give to the library: see the package's invariants 2 to 4.
func guarded(data []byte) ([]byte, error) {
	if len(data) > token.MaxFile {
		return nil, fmt.Errorf("%w: file of %d bytes, over %d", token.ErrUnsupported, len(data), token.MaxFile)
	}
	if bytes.IndexByte(data, 0) >= 0 || bytes.Contains(data, []byte(`\u0000`)) {
		return nil, fmt.Errorf("%w: NUL in the file", token.ErrUnsupported)
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%w: not utf-8", token.ErrBadFile)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return nil, fmt.Errorf("%w: %.200s", token.ErrBadFile, err)
	}
	for _, part := range []string{"normalizer", "pre_tokenizer"} {
		if err := checkCharsmaps(parts[part]); err != nil {
			return nil, err
		}
	}
	delete(parts, "truncation")
	delete(parts, "padding")
	out, err := json.Marshal(parts)
	if err != nil {
		return nil, fmt.Errorf("%w: %.200s", token.ErrBadFile, err)
	}
	return out, nil
}

// checkCharsmaps refuses a Precompiled normalizer that the library would end the process on.
func checkCharsmaps(raw json.RawMessage) error {
	var v struct {
		Type        string            `json:"type"`
		Map         *string           `json:"precompiled_charsmap"`
		Normalizers []json.RawMessage `json:"normalizers"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return nil // the library refuses it with an error
	}
	for _, part := range v.Normalizers {
		if err := checkCharsmaps(part); err != nil {
			return err
		}
	}
	if v.Type != "Precompiled" {
		return nil
	}
	if v.Map == nil || !decodes(*v.Map) {
		return fmt.Errorf("%w: precompiled_charsmap does not decode", token.ErrBadFile)
	}
	return nil
}

// decodes follows spm_precompiled's parser: base64 of a size, a table of that many bytes, and text.
func decodes(charsmap string) bool {
	raw, err := base64.StdEncoding.DecodeString(charsmap)
	if err != nil || len(raw) < 4 {
		return false
	}
	size := binary.LittleEndian.Uint32(raw)
	rest := raw[4:]
	return size%4 == 0 && size > 0 && uint64(size) <= uint64(len(rest)) && utf8.Valid(rest[size:])
}

// tokenIDs are the ids of a file's tokens as the library gives them: those of the vocabulary, and for an added token
// that is not in it the next free one in the order of the file.
func tokenIDs(data []byte) (map[string]uint32, error) {
	var f struct {
		Added []struct {
			Content string `json:"content"`
		} `json:"added_tokens"`
		Model struct {
			Vocab json.RawMessage `json:"vocab"`
		} `json:"model"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%w: %.200s", token.ErrBadFile, err)
	}
	ids := map[string]uint32{}
	if err := json.Unmarshal(f.Model.Vocab, &ids); err != nil { // Unigram: [["token", score], ...]
		var list [][]json.RawMessage
		if json.Unmarshal(f.Model.Vocab, &list) != nil {
			return nil, fmt.Errorf("%w: vocab: %.200s", token.ErrBadFile, err)
		}
		ids = make(map[string]uint32, len(list))
		for i, pair := range list {
			var word string
			if len(pair) != 2 || json.Unmarshal(pair[0], &word) != nil {
				return nil, fmt.Errorf("%w: vocab: entry %d is no pair", token.ErrBadFile, i)
			}
			ids[word] = uint32(i)
		}
	}
	next := uint32(len(ids))
	for _, t := range f.Added {
		if _, ok := ids[t.Content]; !ok && t.Content != "" {
			ids[t.Content] = next
			next++
		}
	}
	return ids, nil
}
