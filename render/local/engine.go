package local

import (
	"errors"
	"io"
	"runtime"

	"github.com/kvscout/kvscout/render/token"
)

// encoder is a tokenizer of either engine.
type encoder interface {
	Encode(dst []uint32, text string, addSpecial bool) ([]uint32, error)
	Size() int64
}

// second makes an encoder of a tokenizer.json that package token refuses; nil in a build without the second engine (tag
// hftokenizers).
var second func(tokenizerJSON []byte) (encoder, error)

// newEncoder makes the tokenizer of a model: ours, or if that refuses the kind and there is one, the second engine's.
func newEncoder(tokenizerJSON []byte) (encoder, error) {
	ours, err := token.Parse(tokenizerJSON)
	if err == nil {
		return ours, nil
	}
	if second == nil || !errors.Is(err, token.ErrUnsupported) {
		return nil, err
	}
	theirs, secondErr := second(tokenizerJSON)
	if secondErr != nil {
		return nil, errors.Join(err, secondErr)
	}
	return theirs, nil
}

// closeLater frees what a model holds outside of Go once no render uses it any more.
func closeLater(m *model) {
	if c, ok := m.tokenizer.(io.Closer); ok {
		// It fails only if it was closed before.
		runtime.AddCleanup(m, func(c io.Closer) { _ = c.Close() }, c)
	}
}
