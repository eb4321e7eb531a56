package token

import (
	"errors"
	"fmt"
)

// What callers match. Every error of this package wraps exactly one of them.
var (
	// ErrUnsupported: the file is in order, but says something that this package does not do exactly. The text names it.
	// Another engine must be used: render/token/hf, or a remote renderer.
	ErrUnsupported = errors.New("tokenizer not supported")
	// ErrBadFile: the file cannot be read, or Hugging Face's library would not load it either.
	ErrBadFile = errors.New("bad tokenizer file")
	// ErrTooLong: a text over MaxText, or one on which a pattern of the file takes too many steps.
	ErrTooLong = errors.New("text too long")
	// ErrBadText: a text that is not UTF-8. The library knows only Unicode text, so there is no right answer.
	ErrBadText = errors.New("text is not utf-8")
)

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

func badFile(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBadFile, fmt.Sprintf(format, args...))
}
