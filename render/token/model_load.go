package token

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// maxID bounds the ids of a vocabulary; the largest known has 262,144 tokens.
const maxID = 1<<24 - 1

// newModel makes the model of a file. rawBytes: its words come as bytes, not as their letters.
func newModel(m *modelFile, rawBytes bool) (*bpe, error) {
	is := func(p *bool) bool { return p != nil && *p }
	b := &bpe{
		bytes: rawBytes, ignoreMerges: is(m.IgnoreMerges), byteFallback: is(m.ByteFallback), fuseUnknown: is(m.FuseUnknown),
		unknown: m.Unknown,
	}
	if err := b.readVocab(m.vocab); err != nil {
		return nil, err
	}
	if b.unknown != nil {
		b.unknownID, b.unknownOK = b.tokenID(*b.unknown)
	}
	b.findLetters()
	joined, err := b.readMerges(m.merges)
	if err != nil {
		return nil, err
	}
	if _, ok := b.vocab.get(string(metaspaceRune)); ok && !b.bytes && joined != nil && b.keepsAll() {
		b.joined = newCharset(joined)
	}
	return b, nil
}

// keepsAll: no character of a word is dropped, so what stands apart in a word stands apart in its symbols.
func (b *bpe) keepsAll() bool {
	if b.unknownOK {
		return true
	}
	for c := range 256 {
		if _, ok := b.tokenID(byteToken(byte(c))); !ok {
			return false
		}
	}
	return b.byteFallback
}

// vocabLen is how many tokens the file's vocab has.
func (b *bpe) vocabLen() int {
	n := b.vocab.len()
	if b.other != nil {
		n += b.other.len()
	}
	return n
}

func (b *bpe) readVocab(raw json.RawMessage) error {
	most := bytes.Count(raw, []byte{':'}) // one before each id, and those in words
	b.vocab = newVocab(most)
	if b.bytes {
		b.other = newVocab(most)
	}
	var seen [(maxID + 1) / 64]uint64
	var scratch []byte
	s := jsonScanner{data: raw}
	err := s.object(func(word string) error {
		id, ok := s.uint()
		if !ok || id > maxID {
			return badFile("vocab: the id of %.40q is none, or over %d", word, maxID)
		}
		if seen[id/64]>>(id%64)&1 != 0 {
			return unsupported("vocab: two tokens have the id %d", id)
		}
		seen[id/64] |= 1 << (id % 64)
		in := b.vocab
		if b.bytes {
			raw, ok := fromByteLetters(scratch[:0], word)
			if scratch = raw; ok {
				word = string(raw)
			} else {
				in = b.other
			}
		}
		if _, twice := in.get(word); twice {
			return unsupported("vocab: the token %.40q comes twice", word)
		}
		in.put(word, id)
		b.longest = max(b.longest, len(word))
		return nil
	})
	if err != nil {
		return err
	}
	b.vocab.fit()
	if b.bytes {
		small := newVocab(b.other.len()) // most often nothing
		for i := range b.other.ids {
			small.put(b.other.at(i), b.other.ids[i])
		}
		b.other = small
	}
	return nil
}

// findLetters fills letters.
func (b *bpe) findLetters() {
	n := 1 << 16
	if b.bytes {
		n = 256
	}
	b.letters = make([]uint32, n)
	for i := range b.letters {
		b.letters[i] = noSymbol
		char := string(rune(i))
		if b.bytes {
			char = string([]byte{byte(i)})
		} else if !utf8.ValidRune(rune(i)) {
			continue
		}
		if id, ok := b.vocab.get(char); ok {
			b.letters[i] = id
		}
	}
}

// readMerges fills merges and returns the characters that a merged token has right before ▁. It returns nil if a token
// merges that stands for other text than its own: that of a byte, or unknown.
func (b *bpe) readMerges(raw json.RawMessage) (joined ranges, err error) {
	var list []byte // the words, and where they end: kept until the number of merges is known
	var ends []int
	s := jsonScanner{data: raw}
	err = s.array(func() error {
		left, right, skip, err := s.pair()
		if err != nil || skip {
			return err
		}
		list = append(list, left...)
		ends = append(ends, len(list))
		list = append(list, right...)
		ends = append(ends, len(list))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if s.strings && s.pairs {
		return nil, badFile("merges of two forms")
	}
	b.merges = newMerges(len(ends) / 2)
	before, whole := map[rune]bool{}, true
	start := 0
	for i := 0; i < len(ends); i += 2 {
		both := string(list[start:ends[i+1]])
		mid := ends[i] - start
		start = ends[i+1]
		var ids [3]uint32
		for k, word := range [3]string{both[:mid], both[mid:], both} {
			id, ok := b.tokenID(word)
			if !ok {
				return nil, badFile("merge %d: %.40q is not in the vocabulary", i/2, word)
			}
			ids[k] = id
		}
		b.merges.put(ids[0], ids[1], uint32(i/2), ids[2])
		beforeMetaspace(both, before)
		whole = whole && !b.standsIn(both[:mid], ids[0]) && !b.standsIn(both[mid:], ids[1])
	}
	if !whole {
		return nil, nil
	}
	joined = ranges{}
	for r := range before {
		joined = append(joined, runeRange{r, r})
	}
	return append(ranges{}, union(joined)...), nil
}

// standsIn says whether a token is that of a byte or the unknown one.
func (b *bpe) standsIn(word string, id uint32) bool {
	return b.unknownOK && id == b.unknownID || len(word) == len("<0x00>") && strings.HasPrefix(word, "<0x")
}

// beforeMetaspace adds the characters that word has right before ▁.
func beforeMetaspace(word string, add map[rune]bool) {
	for i := 0; ; {
		j := strings.Index(word[i:], string(metaspaceRune))
		if j < 0 {
			return
		}
		i += j
		if r, n := utf8.DecodeLastRuneInString(word[:i]); n > 0 {
			add[r] = true
		}
		i += len(string(metaspaceRune))
	}
}
