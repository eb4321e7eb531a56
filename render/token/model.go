package token

import (
	"strings"
	"unicode/utf8"
)

// metaspaceRune stands for a space in SentencePiece-style vocabularies.
const metaspaceRune = '▁'

// bpe is the model: words to ids (tokenizers' models/bpe). It is only read after it was made.
type bpe struct {
	vocab  *vocab
	merges *merges
	// bytes: words are raw bytes, and so are the words of vocab. other holds the tokens that no bytes stand for.
	bytes bool
	other *vocab
	// letters are the symbols of the characters below 65536 (of the bytes, if bytes), noSymbol where there is none.
	letters      []uint32
	ignoreMerges bool
	byteFallback bool
	fuseUnknown  bool
	unknown      *string
	unknownID    uint32
	unknownOK    bool // unknown is in vocab
	longest      int  // the longest word of vocab, in bytes
	// joined are the characters that some token has right before ▁. Nothing merges across any other such boundary, so
	// a word may be cut there. Nil if words are not cut.
	joined *charset
}

const noSymbol = ^uint32(0)

// word appends the ids of a word that is not empty. The words of a cut one are looked up in the cache each.
func (b *bpe) word(e *encoder, w string) error {
	if b.ignoreMerges && len(w) <= b.longest {
		if id, ok := b.vocab.get(w); ok {
			e.ids = append(e.ids, id)
			return nil
		}
	}
	if b.joined == nil {
		return b.cached(e, w)
	}
	for start, i := 0, 1; start < len(w); i++ {
		j := strings.Index(w[min(i, len(w)):], string(metaspaceRune))
		if j < 0 {
			return b.cached(e, w[start:])
		}
		i += j
		if r, _ := utf8.DecodeLastRuneInString(w[:i]); !b.joined.has(r) {
			if err := b.cached(e, w[start:i]); err != nil {
				return err
			}
			start = i
		}
	}
	return nil
}

func (b *bpe) cached(e *encoder, w string) error {
	if len(w) > maxCached {
		return b.encode(e, w)
	}
	hit, pair := e.cache.find(w)
	if hit != nil {
		e.ids = append(e.ids, hit.ids...)
		return nil
	}
	before := len(e.ids)
	if err := b.encode(e, w); err != nil {
		return err
	}
	put(pair, w, e.ids[before:])
	return nil
}

func (b *bpe) encode(e *encoder, w string) error {
	e.symbols = e.symbols[:0]
	var err error
	if b.bytes && b.unknown == nil && !b.byteFallback {
		for i := range len(w) {
			if id := b.letters[w[i]]; id != noSymbol {
				e.symbols = append(e.symbols, id)
			} // else dropped without a word, as the library does
		}
	} else {
		err = b.characters(e, w)
	}
	e.ids = b.merges.apply(e.ids, e.symbols, &e.queue)
	if cap(e.symbols) > keepQueue {
		e.symbols = nil
	}
	return err
}

// characters makes a symbol of each character, as merge_word does (models/bpe/model.rs): what is not in the vocabulary
// becomes bytes, if it has them all, else unknown. A pending unknown waits for the next character that is in the
// vocabulary, also when bytes come before it.
func (b *bpe) characters(e *encoder, w string) error {
	pending := false
	flush := func() {
		if pending {
			e.symbols = append(e.symbols, b.unknownID)
			pending = false
		}
	}
	for i := 0; i < len(w); {
		size := 1
		if !b.bytes {
			_, size = utf8.DecodeRuneInString(w[i:])
		}
		char := w[i : i+size]
		i += size
		if id := b.symbol(char); id != noSymbol {
			flush()
			e.symbols = append(e.symbols, id)
			continue
		}
		if b.byteFallback && b.fallback(e, char) {
			continue
		}
		if b.unknown == nil {
			continue // dropped without a word, as the library does
		}
		if !b.unknownOK {
			return badFile("the unknown token %.40q is not in the vocabulary", *b.unknown)
		}
		if !b.fuseUnknown {
			flush()
		}
		pending = true
	}
	flush()
	return nil
}

// symbol is the id of a character.
func (b *bpe) symbol(char string) uint32 {
	if b.bytes {
		return b.letters[char[0]]
	}
	r, _ := utf8.DecodeRuneInString(char)
	if int(r) < len(b.letters) {
		return b.letters[r]
	}
	if id, ok := b.vocab.get(char); ok {
		return id
	}
	return noSymbol
}

// fallback appends the byte tokens of a character, all or none.
func (b *bpe) fallback(e *encoder, char string) bool {
	if b.bytes {
		char = string(letterOfByte[char[0]])
	}
	before := len(e.symbols)
	for i := range len(char) {
		id, ok := b.tokenID(byteToken(char[i]))
		if !ok {
			e.symbols = e.symbols[:before]
			return false
		}
		e.symbols = append(e.symbols, id)
	}
	return true
}

// byteToken is the token of a byte, such as <0x0A>.
func byteToken(c byte) string {
	const hex = "0123456789ABCDEF"
	return string([]byte{'<', '0', 'x', hex[c>>4], hex[c&15], '>'})
}

// tokenID is the id of a token as the file writes it.
func (b *bpe) tokenID(token string) (uint32, bool) {
	if !b.bytes {
		return b.vocab.get(token)
	}
	if raw, ok := fromByteLetters(nil, token); ok {
		return b.vocab.get(string(raw))
	}
	return b.other.get(token)
}

func (b *bpe) size() int64 {
	n := b.vocab.size() + b.merges.size() + 4*int64(len(b.letters))
	if b.other != nil {
		n += b.other.size()
	}
	if b.joined != nil {
		n += b.joined.size()
	}
	return n
}
