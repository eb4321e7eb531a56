package dashboard

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds what is shown of one text of the server, in characters.
const maxText = 256

// Printable makes a text of a server harmless for a terminal: what is not printable (control and format characters, bad
// UTF-8) becomes U+FFFD.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// clean is the printable text; a long one ends in an ellipsis.
func clean(s string) string {
	n := 0
	for i := range s {
		if n == maxText {
			return Printable(s[:i]) + "…"
		}
		n++
	}
	return Printable(s)
}
