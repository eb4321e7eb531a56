package events

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/vmihailenco/msgpack/v5"
)

// class is the type of a msgpack value, as its first byte tells it.
type class uint8

const (
	// classNone is the end of the bytes, or the byte c1, which begins no value.
	classNone class = iota
	classNil
	classBool
	classInt
	classFloat
	classString
	classBytes
	classArray
	classMap
	classExt
)

// reader reads msgpack values from a byte slice. A value of another type than asked for is a fault; bytes that break
// off are an error that wraps ErrPayload. Nothing is allocated from a length before it is held against the bytes left.
type reader struct {
	buf []byte
	// src is at the same place for dec and for the loops of our own: dec reads it byte by byte, without a buffer.
	src bytes.Reader
	dec *msgpack.Decoder
}

func (r *reader) init() { r.dec = msgpack.NewDecoder(&r.src) }

func (r *reader) reset(b []byte) {
	r.buf = b
	r.src.Reset(b)
}

// left is the number of bytes not read yet.
func (r *reader) left() int { return r.src.Len() }

// offset is the number of bytes read.
func (r *reader) offset() int { return len(r.buf) - r.src.Len() }

// rest holds the bytes not read yet.
func (r *reader) rest() []byte { return r.buf[r.offset():] }

// seek moves to an offset within the bytes; bytes.Reader errs only below 0.
func (r *reader) seek(offset int) { _, _ = r.src.Seek(int64(offset), io.SeekStart) }

func (r *reader) advance(n int) { r.seek(r.offset() + n) }

func (r *reader) broken() error {
	return fmt.Errorf("%w: msgpack breaks at byte %d of %d", ErrPayload, r.offset(), len(r.buf))
}

// next is the type of the value that follows.
func (r *reader) next() class {
	if r.left() == 0 {
		return classNone
	}
	return classOf(r.buf[r.offset()])
}

func classOf(c byte) class {
	switch {
	case c < 0x80, c >= 0xe0, c >= 0xcc && c <= 0xd3:
		return classInt
	case c < 0x90, c == 0xde, c == 0xdf:
		return classMap
	case c < 0xa0, c == 0xdc, c == 0xdd:
		return classArray
	case c < 0xc0, c >= 0xd9 && c <= 0xdb:
		return classString
	case c == 0xc0:
		return classNil
	case c == 0xc1:
		return classNone
	case c <= 0xc3:
		return classBool
	case c <= 0xc6:
		return classBytes
	case c == 0xca, c == 0xcb:
		return classFloat
	default:
		return classExt
	}
}

// arrayLen reads the header of an array, whose elements take at least a byte each.
func (r *reader) arrayLen() (int, error) {
	if r.next() != classArray {
		return 0, fault(ReasonBadEvent)
	}
	n, err := r.dec.DecodeArrayLen()
	if err != nil || n > r.left() {
		return 0, r.broken()
	}
	return n, nil
}

// mapLen reads the header of a map: the number of its pairs of key and value.
func (r *reader) mapLen() (int, error) {
	if r.next() != classMap {
		return 0, fault(ReasonBadEvent)
	}
	n, err := r.dec.DecodeMapLen()
	if err != nil || n > r.left()/2 {
		return 0, r.broken()
	}
	return n, nil
}

// bytes reads a string or a byte string. The result lies in the payload.
func (r *reader) bytes() ([]byte, error) {
	if c := r.next(); c != classString && c != classBytes {
		return nil, fault(ReasonBadEvent)
	}
	n, err := r.dec.DecodeBytesLen()
	if err != nil || n > r.left() {
		return nil, r.broken()
	}
	b := r.rest()[:n:n]
	r.advance(n)
	return b, nil
}

// key reads the key of a map: nil for one that is no string, which no field has.
func (r *reader) key() ([]byte, error) {
	if r.next() == classString {
		return r.bytes()
	}
	return nil, r.skip()
}

// int reads an integer that fits in 64 bits with a sign.
func (r *reader) int() (int64, error) {
	if r.next() != classInt {
		return 0, fault(ReasonBadEvent)
	}
	wide := r.rest()[0] == 0xcf
	v, err := r.dec.DecodeInt64()
	if err != nil {
		return 0, r.broken()
	}
	if wide && v < 0 { // a uint64 over the range: DecodeInt64 keeps its bits
		return 0, fault(ReasonBadEvent)
	}
	return v, nil
}

// intIn reads an integer from low to high.
func (r *reader) intIn(low, high int64) (int64, error) {
	v, err := r.int()
	if err == nil && (v < low || v > high) {
		return 0, fault(ReasonBadEvent)
	}
	return v, err
}

func (r *reader) float() (float64, error) {
	if r.next() != classFloat {
		return 0, fault(ReasonBadEvent)
	}
	v, err := r.dec.DecodeFloat64()
	if err != nil {
		return 0, r.broken()
	}
	return v, nil
}

// skip passes over one value of any type. It needs no stack: it counts the values still to come, each of which takes
// at least a byte, so neither depth nor a length in a header costs anything.
func (r *reader) skip() error {
	p := r.rest()
	pending := int64(1)
	for pending > 0 {
		if pending > int64(len(p)) {
			return r.broken()
		}
		size, children := extent(p)
		if size == 0 || size > int64(len(p)) {
			return r.broken()
		}
		p = p[size:]
		pending += children - 1
	}
	r.seek(len(r.buf) - len(p))
	return nil
}

// extent is the size in bytes of the value that p begins with, not counting the values inside it, and the number of
// those. The size is 0 when p holds no value, and may exceed p.
func extent(p []byte) (size, children int64) {
	c := p[0]
	switch {
	case c < 0x80, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
		return 1, 0
	case c < 0x90:
		return 1, 2 * int64(c&0x0f)
	case c < 0xa0:
		return 1, int64(c & 0x0f)
	case c < 0xc0:
		return 1 + int64(c&0x1f), 0
	case c == 0xc1:
		return 0, 0
	case c >= 0xca && c <= 0xd3: // float32, float64, uint8 to uint64, int8 to int64
		return [...]int64{5, 9, 2, 3, 5, 9, 2, 3, 5, 9}[c-0xca], 0
	case c >= 0xd4 && c <= 0xd8: // an extension of 1, 2, 4, 8 or 16 bytes, and its type
		return 2 + 1<<(c-0xd4), 0
	}
	width := 1 << lengthShift[c-lengthCodes] // of the length after the code
	if len(p) < 1+width {
		return 0, 0
	}
	n := beUint(p[1 : 1+width])
	switch {
	case c == 0xde || c == 0xdf:
		return int64(1 + width), 2 * n
	case c == 0xdc || c == 0xdd:
		return int64(1 + width), n
	case c >= 0xc7 && c <= 0xc9:
		return int64(2+width) + n, 0
	default:
		return int64(1+width) + n, 0
	}
}

// lengthCodes is the first code of lengthShift.
const lengthCodes = 0xc4

// lengthShift tells, from lengthCodes on, of how many bytes the length behind the code is, as a power of two.
var lengthShift = [...]uint8{
	0xc4 - lengthCodes: 0, 0xc5 - lengthCodes: 1, 0xc6 - lengthCodes: 2, // byte strings
	0xc7 - lengthCodes: 0, 0xc8 - lengthCodes: 1, 0xc9 - lengthCodes: 2, // extensions
	0xd9 - lengthCodes: 0, 0xda - lengthCodes: 1, 0xdb - lengthCodes: 2, // strings
	0xdc - lengthCodes: 1, 0xdd - lengthCodes: 2, 0xde - lengthCodes: 1, 0xdf - lengthCodes: 2, // arrays, maps
}

// beUint reads 1, 2 or 4 bytes, big-endian.
func beUint(p []byte) int64 {
	switch len(p) {
	case 1:
		return int64(p[0])
	case 2:
		return int64(binary.BigEndian.Uint16(p))
	default:
		return int64(binary.BigEndian.Uint32(p))
	}
}
