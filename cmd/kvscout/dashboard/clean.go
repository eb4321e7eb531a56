package dashboard

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds what is shown of one text of the server, in characters.
const maxText = 256

// clean makes a text of the server harmless for a terminal: what is not printable (control and format characters, bad
// UTF-8) becomes U+FFFD, and what is too long ends in an ellipsis.
func clean(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n == maxText {
			b.WriteRune('…')
			break
		}
		if !unicode.IsPrint(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}
