package token

import "unicode/utf8"

// letterOfByte is GPT-2's alphabet: a printable character for every byte (tokenizers' bytes_char in byte_level.rs).
var letterOfByte, byteOfLetter = func() (letters [256]rune, bytes map[rune]byte) {
	bytes = make(map[rune]byte, 256)
	next := rune(256)
	for b := range letters {
		r := rune(b)
		if !('!' <= r && r <= '~' || 0xA1 <= r && r <= 0xAC || 0xAE <= r) {
			r = next
			next++
		}
		letters[b] = r
		bytes[r] = byte(b)
	}
	return letters, bytes
}()

// byteLetters writes every byte as its letter. It is a normalizer and a pre-tokenizer.
type byteLetters struct{}

func (byteLetters) normalize(s string, _ *matcher) string { return toByteLetters(s) }

func toByteLetters(s string) string {
	out := make([]byte, 0, len(s)+len(s)/2)
	for i := range len(s) {
		out = utf8.AppendRune(out, letterOfByte[s[i]])
	}
	return string(out)
}

// fromByteLetters appends the bytes that s is written for, or says that s has other characters.
func fromByteLetters(dst []byte, s string) ([]byte, bool) {
	for _, r := range s {
		b, ok := byteOfLetter[r]
		if !ok {
			return dst, false
		}
		dst = append(dst, b)
	}
	return dst, true
}
