package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/indexer"
)

// errShort is content that ends too early, or claims more than there is of it.
var errShort = errors.New("content is cut off")

// decoder reads the content of a stream's section. Its first error stays, and what is read after it is zero.
type decoder struct {
	buf []byte
	err error
}

// Bytes that a book, a scope with a block in it, a run of keys, a run of held blocks and a count of copies have at least.
const (
	minBook   = 40
	minScope  = 6 + minRun + minHeld
	minRun    = 10
	minHeld   = 12
	minCopies = 3
)

// decodeStream fills s from a section's content.
func decodeStream(content []byte, s *indexer.Saved) error {
	d := decoder{buf: content}
	var m streamMeta
	d.meta(&m)
	n := d.count(minBook)
	if d.err == nil && (n == 0 || n > indexer.MaxBooks) {
		d.err = fmt.Errorf("%d books", n)
	}
	if d.err != nil {
		return d.err
	}
	m.fill(s)
	for len(s.Books) < n {
		s.Books = append(s.Books, indexer.Book{})
	}
	s.Books = s.Books[:n]
	for i := range s.Books {
		b := &s.Books[i]
		b.BookMeta = indexer.BookMeta{}
		d.meta(&b.BookMeta)
		d.book(b)
		if d.err == nil {
			d.err = b.Check()
		}
		if d.err != nil {
			return fmt.Errorf("book %d: %w", i, d.err)
		}
	}
	if len(d.buf) > 0 {
		return fmt.Errorf("%d bytes too many", len(d.buf))
	}
	return nil
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.buf = nil
}

// number reads a number that fits an int of 32 bits.
func (d *decoder) number() int {
	n := d.uvarint()
	if n > math.MaxInt32 {
		d.fail(fmt.Errorf("number %d is too large", n))
		return 0
	}
	return int(n)
}

// count reads how many things follow of which each takes at least so many bytes.
func (d *decoder) count(each int) int {
	n := d.uvarint()
	if n > uint64(len(d.buf)/each) {
		d.fail(errShort)
		return 0
	}
	return int(n)
}

func (d *decoder) uvarint() uint64 {
	n, size := binary.Uvarint(d.buf)
	if size <= 0 {
		d.fail(errShort)
		return 0
	}
	d.buf = d.buf[size:]
	return n
}

func (d *decoder) signed() int {
	n, size := binary.Varint(d.buf)
	if size <= 0 || n > math.MaxInt32 || n < math.MinInt32 {
		d.fail(errShort)
		return 0
	}
	d.buf = d.buf[size:]
	return int(n)
}

// meta reads a small part.
func (d *decoder) meta(into any) {
	text := d.take(d.count(1))
	if d.err == nil && len(text) > maxMeta {
		d.fail(ErrTooLarge)
	}
	if d.err != nil {
		return
	}
	if err := readMeta(text, into); err != nil {
		d.fail(err)
	}
}

// take is the next n bytes.
func (d *decoder) take(n int) []byte {
	if n > len(d.buf) {
		d.fail(errShort)
		return nil
	}
	out := d.buf[:n]
	d.buf = d.buf[n:]
	return out
}

func (d *decoder) text() string { return string(d.take(d.count(1))) }

func (d *decoder) octet() uint8 {
	if b := d.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (d *decoder) boolean() bool {
	b := d.octet()
	if b > 1 {
		d.fail(fmt.Errorf("truth value %d", b))
	}
	return b == 1
}

func (d *decoder) book(b *indexer.Book) {
	b.Scopes = b.Scopes[:0]
	for range d.count(minScope) {
		var s indexer.Scope
		s.Model, s.Salt, s.Adapter, s.Extra = d.text(), d.text(), d.text(), d.text()
		s.BlockSize, s.Pairs = d.number(), d.boolean()
		if d.err != nil {
			return
		}
		b.Scopes = append(b.Scopes, s)
	}
	d.keys(b)
	d.held(b)
	b.Copies = b.Copies[:0]
	last := 0
	for range d.count(minCopies) {
		last += d.number()
		c := indexer.Copies{Hash: last, Bit: d.octet()}
		n := d.uvarint()
		if d.err == nil && n > math.MaxUint32 {
			d.fail(fmt.Errorf("%d copies", n))
		}
		if d.err != nil {
			return
		}
		c.N = uint32(n)
		b.Copies = append(b.Copies, c)
	}
}

func (d *decoder) keys(b *indexer.Book) {
	b.Keys = slices.Grow(b.Keys[:0], d.count(8))
	b.Runs = b.Runs[:0]
	for range d.count(minRun) {
		r := indexer.KeyRun{Parent: d.signed()}
		if r.Parent >= 0 {
			r.Parent = len(b.Keys) - 1 - r.Parent
			if r.Parent < 0 {
				d.fail(errors.New("a run follows nothing"))
			}
		}
		r.Blocks = d.count(8)
		if d.err != nil {
			return
		}
		for words := d.take(8 * r.Blocks); len(words) > 0; words = words[8:] {
			b.Keys = append(b.Keys, indexer.Key(binary.LittleEndian.Uint64(words)))
		}
		b.Runs = append(b.Runs, r)
	}
}

func (d *decoder) held(b *indexer.Book) {
	b.Hashes = slices.Grow(b.Hashes[:0], d.count(8))
	b.Held = b.Held[:0]
	next := 0
	for range d.count(minHeld) {
		r := indexer.HeldRun{First: next + d.signed(), Blocks: d.number(), Mask: d.uvarint()}
		size := 8
		digests := d.boolean()
		if digests {
			size = 16
		}
		if d.err == nil && r.Blocks > len(d.buf)/size {
			d.fail(errShort)
		}
		if d.err != nil {
			return
		}
		for words := d.take(size * r.Blocks); len(words) > 0; words = words[size:] {
			h := events.HashInt(binary.LittleEndian.Uint64(words))
			if digests {
				h.Hi = binary.LittleEndian.Uint64(words[8:])
			}
			b.Hashes = append(b.Hashes, h)
		}
		b.Held = append(b.Held, r)
		next = r.First + r.Blocks
	}
}
