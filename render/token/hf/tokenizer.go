//go:build hftokenizers

package hf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/daulet/tokenizers"

	"github.com/kvscout/kvscout/render/token"
)

// What callers match, besides the errors of package token, which mean the same here.
var (
	// ErrClosed: the Tokenizer was closed.
	ErrClosed = errors.New("tokenizer is closed")
	// ErrEncode: the library gave nothing for a text that has characters. It cannot say why.
	ErrEncode = errors.New("no ids from the tokenizer")
)

// Tokenizer turns texts into ids. It is safe for concurrent use.
type Tokenizer struct {
	mu  sync.RWMutex // guards lib: read for a call into it, written by Close
	lib *tokenizers.Tokenizer

	ids  map[string]uint32
	size int64
}

// Load reads dir/tokenizer.json. Its errors are token.ErrUnsupported and token.ErrBadFile.
func Load(dir string) (*Tokenizer, error) {
	f, err := os.Open(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", token.ErrBadFile, err)
	}
	data, err := io.ReadAll(io.LimitReader(f, token.MaxFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%w: %w", token.ErrBadFile, err)
	}
	return Parse(data)
}

// Parse is Load for the content of a tokenizer.json.
func Parse(tokenizerJSON []byte) (*Tokenizer, error) {
	data, err := guarded(tokenizerJSON)
	if err != nil {
		return nil, err
	}
	ids, err := tokenIDs(data)
	if err != nil {
		return nil, err
	}
	lib, err := tokenizers.FromBytes(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %.200s", token.ErrBadFile, err)
	}
	return &Tokenizer{lib: lib, ids: ids, size: int64(len(data)) * sizePerByte}, nil
}

// sizePerByte of a file is what the library takes at the most, measured on the six tokenizers of the parity test.
const sizePerByte = 12

// Encode is (*token.Tokenizer).Encode by the library. Its errors are token.ErrTooLong, token.ErrBadText, ErrEncode and
// ErrClosed.
func (t *Tokenizer) Encode(dst []uint32, text string, addSpecial bool) ([]uint32, error) {
	if len(text) > token.MaxText {
		return dst, fmt.Errorf("%w: %d bytes, over %d", token.ErrTooLong, len(text), token.MaxText)
	}
	if !utf8.ValidString(text) {
		return dst, token.ErrBadText
	}
	if i := strings.IndexByte(text, 0); i >= 0 {
		return dst, fmt.Errorf("%w: NUL at byte %d, where the library would cut it", token.ErrBadText, i)
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.lib == nil {
		return dst, ErrClosed
	}
	ids := t.lib.EncodeWithOptions(text, addSpecial).IDs
	if len(ids) == 0 && text != "" {
		return dst, fmt.Errorf("%w: a text of %d bytes", ErrEncode, len(text))
	}
	return append(dst, ids...), nil
}

// TokenID is the id of a token as the file writes it, added tokens first.
func (t *Tokenizer) TokenID(tok string) (uint32, bool) {
	id, ok := t.ids[tok]
	return id, ok
}

// Size estimates how much memory t holds, in bytes: most of it is the library's and not Go's.
func (t *Tokenizer) Size() int64 { return t.size }

// Close frees the library's memory.
func (t *Tokenizer) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lib == nil {
		return nil
	}
	err := t.lib.Close()
	t.lib = nil
	return err
}
