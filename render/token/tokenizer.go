package token

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"unicode/utf8"
)

// Bounds. A context of a million tokens has some 4 MB of text; Gemma 3's file, the largest known, has 33 MB.
const (
	// MaxText is how long a text may be, in bytes. At the worst, one word without an end, Encode takes 32 bytes for each.
	MaxText = 4 << 20
	// MaxFile is how long a tokenizer.json may be, in bytes.
	MaxFile = 64 << 20
)

// fileName is the file that Load reads.
const fileName = "tokenizer.json"

// Tokenizer turns texts into token ids, equal to Hugging Face's library for the same file. It is safe for concurrent
// use.
type Tokenizer struct {
	added      *addedTokens
	normalizer normalizers
	pre        preTokenizers
	model      *bpe
	template   template
	cache      *cache
	encoders   sync.Pool // of *encoder
	size       int64
}

// Load reads dir/tokenizer.json. Its errors are ErrUnsupported and ErrBadFile.
func Load(dir string) (*Tokenizer, error) {
	data, err := readBounded(filepath.Join(dir, fileName), MaxFile)
	if err != nil {
		return nil, err
	}
	return Parse(data)
}

// Parse is Load for the content of a tokenizer.json. It does not keep tokenizerJSON.
func Parse(tokenizerJSON []byte) (*Tokenizer, error) {
	f, m, err := readFile(tokenizerJSON)
	if err != nil {
		return nil, err
	}
	return assemble(f, m)
}

func assemble(f *file, m *modelFile) (*Tokenizer, error) {
	t := &Tokenizer{cache: newCache()}
	t.encoders.New = func() any { return &encoder{cache: t.cache} }
	var err error
	if err = t.normalizer.parse(f.normalizer); err != nil {
		return nil, err
	}
	if err = t.pre.parse(f.pre); err != nil {
		return nil, err
	}
	if t.pre.asksFirst && t.normalizer.shifts {
		return nil, unsupported("pre-tokenizer Metaspace with prepend_scheme first behind a normalizer that moves the beginning")
	}
	if t.template, err = parseTemplate(f.post); err != nil {
		return nil, err
	}
	if t.model, err = newModel(m, t.pre.bytes); err != nil {
		return nil, err
	}
	if t.added, err = newAddedTokens(f.added, t.model, &t.normalizer); err != nil {
		return nil, err
	}
	t.size = t.model.size() + t.added.size() + t.cache.size() + t.pre.size() + t.normalizer.size()
	return t, nil
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadFile, err)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadFile, err)
	}
	if int64(len(data)) > limit {
		return nil, unsupported("file of more than %d bytes", limit)
	}
	return data, nil
}

// Encode appends the ids of text to dst. addSpecial adds the tokens that the file's post-processor puts around a text,
// such as one for its beginning; special tokens that text itself spells are always found. On an error, which is ErrBadText
// or ErrTooLong or, for a broken file, ErrBadFile, it returns dst as it was. An empty text has no ids of its own.
func (t *Tokenizer) Encode(dst []uint32, text string, addSpecial bool) ([]uint32, error) {
	if len(text) > MaxText {
		return dst, fmt.Errorf("%w: %d bytes, over %d", ErrTooLong, len(text), MaxText)
	}
	if !utf8.ValidString(text) {
		return dst, ErrBadText
	}
	e := t.encoders.Get().(*encoder)
	defer t.encoders.Put(e)
	e.t, e.ids, e.matcher = t, dst, newMatcher(len(text))
	defer func() { e.ids = nil }()
	for _, piece := range t.template {
		if piece.text {
			if err := errors.Join(e.text(text), e.spent()); err != nil {
				return dst, err
			}
		} else if addSpecial {
			e.ids = append(e.ids, piece.ids...)
		}
	}
	return e.ids, nil
}

// TokenID is the id of a token as the file writes it, added tokens first.
func (t *Tokenizer) TokenID(token string) (uint32, bool) {
	if id, ok := t.added.byContent[token]; ok {
		return id, true
	}
	return t.model.tokenID(token)
}

// Size is how much memory t holds, in bytes, its cache taken as full. It does not change.
func (t *Tokenizer) Size() int64 { return t.size }
