package snapshot

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/kvscout/kvscout/indexer"
)

// encoder makes the content of a stream's section. Its memory is used again.
type encoder struct{ buf []byte }

func (e *encoder) stream(s *indexer.Saved) ([]byte, error) {
	e.buf = e.buf[:0]
	if err := e.meta(metaOf(s)); err != nil {
		return nil, err
	}
	e.number(len(s.Books))
	for i := range s.Books {
		if err := e.meta(s.Books[i].BookMeta); err != nil {
			return nil, err
		}
		e.book(&s.Books[i])
	}
	return e.buf, nil
}

// meta appends what is small. It errs with ErrTooLarge if it is not.
func (e *encoder) meta(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(text) > maxMeta {
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, len(text))
	}
	e.text(string(text))
	return nil
}

func (e *encoder) number(n int)  { e.buf = binary.AppendUvarint(e.buf, uint64(n)) }
func (e *encoder) signed(n int)  { e.buf = binary.AppendVarint(e.buf, int64(n)) }
func (e *encoder) word(n uint64) { e.buf = binary.LittleEndian.AppendUint64(e.buf, n) }
func (e *encoder) text(s string) { e.number(len(s)); e.buf = append(e.buf, s...) }

func (e *encoder) boolean(b bool) {
	if b {
		e.buf = append(e.buf, 1)
	} else {
		e.buf = append(e.buf, 0)
	}
}

func (e *encoder) book(b *indexer.Book) {
	e.number(len(b.Scopes))
	for _, s := range b.Scopes {
		for _, part := range []string{s.Model, s.Salt, s.Adapter, s.Extra} {
			e.text(part)
		}
		e.number(s.BlockSize)
		e.boolean(s.Pairs)
	}
	e.number(len(b.Keys))
	e.number(len(b.Runs))
	at := 0
	for _, r := range b.Runs {
		if r.Parent < 0 {
			e.signed(r.Parent)
		} else {
			e.signed(at - 1 - r.Parent) // how far back
		}
		e.number(r.Blocks)
		for _, k := range b.Keys[at : at+r.Blocks] {
			e.word(uint64(k))
		}
		at += r.Blocks
	}
	e.held(b)
	e.number(len(b.Copies))
	last := 0
	for _, c := range b.Copies {
		e.number(c.Hash - last)
		e.buf = binary.AppendUvarint(append(e.buf, c.Bit), uint64(c.N))
		last = c.Hash
	}
}

func (e *encoder) held(b *indexer.Book) {
	e.number(len(b.Hashes))
	e.number(len(b.Held))
	at, next := 0, 0
	for _, r := range b.Held {
		e.signed(r.First - next)
		e.number(r.Blocks)
		e.buf = binary.AppendUvarint(e.buf, r.Mask)
		hashes := b.Hashes[at : at+r.Blocks]
		digests := false
		for _, h := range hashes {
			digests = digests || h.Digest()
		}
		e.boolean(digests)
		for _, h := range hashes {
			e.word(h.Lo)
			if digests {
				e.word(h.Hi)
			}
		}
		at += r.Blocks
		next = r.First + r.Blocks
	}
}
