package events

import (
	"encoding/binary"
	"math"
	"slices"
)

// readHashes reads the list of block ids.
func (d *Decoder) readHashes(e *Event) error {
	n, err := d.r.arrayLen()
	if err != nil {
		return err
	}
	if n > d.limits.Hashes-len(d.hashes) {
		return fault(ReasonTooLarge)
	}
	start := len(d.hashes)
	d.hashes = slices.Grow(d.hashes, n)
	p := d.r.rest()
	for range n {
		if len(p) >= 9 && (p[0] == 0xcf || p[0] == 0xd3) { // uint64, int64: nearly every hash
			d.hashes = append(d.hashes, HashInt(binary.BigEndian.Uint64(p[1:])))
			p = p[9:]
			continue
		}
		h, size := hashAt(p)
		if size == 0 {
			return fault(ReasonBadEvent)
		}
		d.hashes = append(d.hashes, h)
		p = p[size:]
	}
	d.r.seek(len(d.r.buf) - len(p))
	e.Hashes = d.hashes[start:len(d.hashes):len(d.hashes)]
	d.ev.hasHashes = true
	return nil
}

// readParent reads the id of the block before the first, nil when the event begins a prompt. 0 is kept as an id: it
// means "none" for some producers (llm-d's simulator and storage backend, LMCache), and only the index can tell, which
// knows whether a block 0 was announced.
func (d *Decoder) readParent(e *Event) error {
	if d.r.next() == classNil {
		e.Parent, e.HasParent = Hash{}, false
		return d.r.skip()
	}
	h, size := hashAt(d.r.rest())
	if size == 0 {
		return fault(ReasonBadEvent)
	}
	d.r.advance(size)
	e.Parent, e.HasParent = h, true
	return nil
}

// readTokens reads the token ids: a list of integers, a list of pairs (SGLang with EAGLE), or nil (Mooncake).
func (d *Decoder) readTokens(e *Event) error {
	e.Tokens, e.Pairs = nil, false
	if d.r.next() == classNil {
		return d.r.skip()
	}
	n, err := d.r.arrayLen()
	if err != nil || n == 0 {
		return err
	}
	if n > d.limits.Tokens-1-len(d.tokens) { // n pairs make n+1 tokens
		return fault(ReasonTooLarge)
	}
	start := len(d.tokens)
	d.tokens = slices.Grow(d.tokens, n+1)
	var p []byte
	if e.Pairs = d.r.next() == classArray; e.Pairs {
		p, err = d.appendPairs(d.r.rest(), n)
	} else {
		p, err = d.appendTokens(d.r.rest(), n)
	}
	if err != nil {
		return err
	}
	d.r.seek(len(d.r.buf) - len(p))
	e.Tokens = d.tokens[start:len(d.tokens):len(d.tokens)]
	return nil
}

// appendTokens takes n token ids off p and returns the rest of it.
func (d *Decoder) appendTokens(p []byte, n int) ([]byte, error) {
	out := d.tokens
	for range n {
		switch {
		case len(p) >= 3 && p[0] == 0xcd:
			out = append(out, uint32(binary.BigEndian.Uint16(p[1:])))
			p = p[3:]
		case len(p) >= 1 && p[0] < 0x80:
			out = append(out, uint32(p[0]))
			p = p[1:]
		case len(p) >= 5 && p[0] == 0xce:
			out = append(out, binary.BigEndian.Uint32(p[1:]))
			p = p[5:]
		default:
			t, size := tokenAt(p)
			if size == 0 {
				return nil, fault(ReasonBadToken)
			}
			out = append(out, t)
			p = p[size:]
		}
	}
	d.tokens = out
	return p, nil
}

// appendPairs takes n pairs off p, each of which begins with the token that the one before it ends with, and returns
// the rest of p.
func (d *Decoder) appendPairs(p []byte, n int) ([]byte, error) {
	out := d.tokens
	for i := range n {
		header := pairAt(p)
		if header == 0 {
			return nil, fault(ReasonBadPairs)
		}
		p = p[header:]
		first, size := tokenAt(p)
		if size == 0 {
			return nil, fault(ReasonBadToken)
		}
		p = p[size:]
		second, size := tokenAt(p)
		if size == 0 {
			return nil, fault(ReasonBadToken)
		}
		p = p[size:]
		if i == 0 {
			out = append(out, first)
		} else if out[len(out)-1] != first {
			return nil, fault(ReasonBadPairs)
		}
		out = append(out, second)
	}
	d.tokens = out
	return p, nil
}

// pairAt is the size in bytes of the header when p begins with an array of 2, else 0.
func pairAt(p []byte) int {
	if len(p) == 0 || classOf(p[0]) != classArray {
		return 0
	}
	size, children := extent(p)
	if children != 2 {
		return 0
	}
	return int(size)
}

// tokenAt reads the token id that p begins with, and its size in bytes: 0 when there is none. A number below 0 or over
// 32 bits is none; it is never wrapped into another token's id.
func tokenAt(p []byte) (t uint32, size int) {
	v, negative, size := intAt(p)
	if negative || v > math.MaxUint32 {
		return 0, 0
	}
	return uint32(v), size
}

// hashAt reads the block id that p begins with, and its size in bytes: 0 when there is none.
func hashAt(p []byte) (h Hash, size int) {
	if v, _, size := intAt(p); size > 0 {
		return HashInt(v), size
	}
	if b, size := bytesAt(p); size > 0 {
		return HashBytes(b), size
	}
	return Hash{}, 0
}

// intAt reads the integer that p begins with as 64 bits in two's complement, and its size in bytes: 0 when there is
// none.
func intAt(p []byte) (v uint64, negative bool, size int) {
	if len(p) == 0 || classOf(p[0]) != classInt {
		return 0, false, 0
	}
	n, _ := extent(p)
	if int64(len(p)) < n {
		return 0, false, 0
	}
	var signed int64
	switch c := p[0]; c {
	case 0xcc:
		return uint64(p[1]), false, 2
	case 0xcd:
		return uint64(binary.BigEndian.Uint16(p[1:])), false, 3
	case 0xce:
		return uint64(binary.BigEndian.Uint32(p[1:])), false, 5
	case 0xcf:
		return binary.BigEndian.Uint64(p[1:]), false, 9
	case 0xd0:
		signed = int64(int8(p[1]))
	case 0xd1:
		signed = int64(int16(binary.BigEndian.Uint16(p[1:])))
	case 0xd2:
		signed = int64(int32(binary.BigEndian.Uint32(p[1:])))
	case 0xd3:
		signed = int64(binary.BigEndian.Uint64(p[1:]))
	default: // one byte, from -32 to 127
		signed = int64(int8(c))
	}
	return uint64(signed), signed < 0, int(n)
}

// bytesAt reads the string or byte string that p begins with, and its size in bytes with the header: 0 when there is
// none. The result lies in p.
func bytesAt(p []byte) (b []byte, size int) {
	if len(p) == 0 {
		return nil, 0
	}
	if c := classOf(p[0]); c != classString && c != classBytes {
		return nil, 0
	}
	n, _ := extent(p)
	if n == 0 || int64(len(p)) < n {
		return nil, 0
	}
	header := 1
	if p[0] >= 0xc0 {
		header += 1 << lengthShift[p[0]-lengthCodes]
	}
	return p[header:n], int(n)
}
