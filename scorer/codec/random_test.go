package codec_test

import (
	"math"
	"math/rand/v2"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fill sets fields of a message at random, each with the given chance, down to a few levels.
func fill(rng *rand.Rand, m protoreflect.Message, chance float64, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if rng.Float64() >= chance || depth == 0 && f.Message() != nil {
			continue
		}
		switch {
		case f.IsMap():
			for range rng.IntN(3) {
				m.Mutable(f).Map().Set(value(rng, f.MapKey()).MapKey(), value(rng, f.MapValue()))
			}
		case f.IsList():
			list := m.Mutable(f).List()
			for range rng.IntN(5) {
				if f.Message() != nil {
					e := list.NewElement()
					fill(rng, e.Message(), chance, depth-1)
					list.Append(e)
				} else {
					list.Append(value(rng, f))
				}
			}
		case f.Message() != nil:
			fill(rng, m.Mutable(f).Message(), chance, depth-1)
		default:
			m.Set(f, value(rng, f))
		}
	}
}

var texts = []string{"", "w0", "decode-worker-pod-1001", "日本", "a\"b\\c\n", "<&>\u2028\x7f", "\x00", "tail of a longer text that takes more than 128 bytes ................................................................................................"}

func value(rng *rand.Rand, f protoreflect.FieldDescriptor) protoreflect.Value {
	edge := rng.IntN(3)
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(edge > 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(rng.IntN(9) - 1))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32([]uint32{0, rng.Uint32(), math.MaxUint32}[edge])
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64([]uint64{0, rng.Uint64N(1000), math.MaxUint64}[edge])
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(rng.Uint32()))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64([]int64{0, rng.Int64N(128000), math.MinInt64}[edge])
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64([]float64{0, rng.Float64(), math.Copysign(0, -1), 1e300, 1e-9, 3, math.Inf(1), math.NaN()}[rng.IntN(8)])
	case protoreflect.BytesKind:
		b := make([]byte, []int{0, 8, 64, 4096}[rng.IntN(4)])
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return protoreflect.ValueOfBytes(b)
	default:
		return protoreflect.ValueOfString(texts[rng.IntN(len(texts))])
	}
}

// twist makes other bytes of the same or nearly the same message: fields in another order, twice, unknown, damaged.
func twist(rng *rand.Rand, b []byte) []byte {
	var fields [][]byte
	for rest := b; len(rest) > 0; {
		_, _, n := protowire.ConsumeField(rest)
		if n < 0 {
			return b
		}
		fields = append(fields, rest[:n])
		rest = rest[n:]
	}
	rng.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	var out []byte
	for _, f := range fields {
		out = append(out, f...)
		switch rng.IntN(12) {
		case 0:
			out = append(out, f...)
		case 1:
			out = protowire.AppendTag(out, protowire.Number(1+rng.IntN(60)), protowire.VarintType)
			out = protowire.AppendVarint(out, rng.Uint64())
		case 2:
			out = protowire.AppendTag(out, protowire.Number(1+rng.IntN(60)), protowire.BytesType)
			out = protowire.AppendBytes(out, []byte{8, 1})
		case 3:
			out = protowire.AppendTag(out, protowire.Number(1+rng.IntN(60)), protowire.Fixed64Type)
			out = protowire.AppendFixed64(out, rng.Uint64())
		}
	}
	if len(out) > 0 {
		switch rng.IntN(8) {
		case 0:
			out = out[:rng.IntN(len(out))]
		case 1:
			out[rng.IntN(len(out))] ^= byte(1 << rng.IntN(8))
		}
	}
	return out
}

func random[M proto.Message](rng *rand.Rand, m M) M {
	fill(rng, m.ProtoReflect(), []float64{0.1, 0.5, 0.9}[rng.IntN(3)], 3)
	return m
}
