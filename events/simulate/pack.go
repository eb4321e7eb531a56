package simulate

import (
	"encoding/binary"
	"math"
)

// packer appends msgpack in the smallest encodings, as msgspec does.
type packer []byte

func (p *packer) nil() { *p = append(*p, 0xc0) }
func (p *packer) float(v float64) {
	*p = binary.BigEndian.AppendUint64(append(*p, 0xcb), math.Float64bits(v))
}

func (p *packer) uint(v uint64) {
	switch {
	case v < 1<<7:
		*p = append(*p, byte(v))
	case v <= math.MaxUint8:
		*p = append(*p, 0xcc, byte(v))
	case v <= math.MaxUint16:
		*p = binary.BigEndian.AppendUint16(append(*p, 0xcd), uint16(v))
	case v <= math.MaxUint32:
		*p = binary.BigEndian.AppendUint32(append(*p, 0xce), uint32(v))
	default:
		*p = binary.BigEndian.AppendUint64(append(*p, 0xcf), v)
	}
}

func (p *packer) int(v int64) {
	switch {
	case v >= 0:
		p.uint(uint64(v))
	case v >= -32:
		*p = append(*p, byte(v))
	case v >= math.MinInt8:
		*p = append(*p, 0xd0, byte(v))
	case v >= math.MinInt16:
		*p = binary.BigEndian.AppendUint16(append(*p, 0xd1), uint16(v))
	case v >= math.MinInt32:
		*p = binary.BigEndian.AppendUint32(append(*p, 0xd2), uint32(v))
	default:
		*p = binary.BigEndian.AppendUint64(append(*p, 0xd3), uint64(v))
	}
}

func (p *packer) string(s string) {
	switch n := len(s); {
	case n < 32:
		*p = append(*p, 0xa0|byte(n))
	case n <= math.MaxUint8:
		*p = append(*p, 0xd9, byte(n))
	case n <= math.MaxUint16:
		*p = binary.BigEndian.AppendUint16(append(*p, 0xda), uint16(n))
	default:
		*p = binary.BigEndian.AppendUint32(append(*p, 0xdb), uint32(n))
	}
	*p = append(*p, s...)
}

// text is a string, or nil when empty.
func (p *packer) text(s string) {
	if s == "" {
		p.nil()
		return
	}
	p.string(s)
}

func (p *packer) array(n int) { p.header(n, 0x90, 0xdc) }

// object begins a map of n keys.
func (p *packer) object(n int) { p.header(n, 0x80, 0xde) }

func (p *packer) header(n int, fix, wide byte) {
	switch {
	case n < 16:
		*p = append(*p, fix|byte(n))
	case n <= math.MaxUint16:
		*p = binary.BigEndian.AppendUint16(append(*p, wide), uint16(n))
	default:
		*p = binary.BigEndian.AppendUint32(append(*p, wide+1), uint32(n))
	}
}

func (p *packer) tokens(list []uint32) {
	p.array(len(list))
	for _, t := range list {
		p.uint(uint64(t))
	}
}
