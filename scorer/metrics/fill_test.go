package metrics_test

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// everything has every field of the statistics set, whatever fields there are: numbers from 2 on, words, one of each list.
func everything() *kvscoutv1.Stats {
	out := new(kvscoutv1.Stats)
	n := uint64(1)
	fill(out.ProtoReflect(), &n)
	return out
}

func fill(m protoreflect.Message, n *uint64) {
	if m.Descriptor() == (*durationpb.Duration)(nil).ProtoReflect().Descriptor() {
		*n++
		m.Set(m.Descriptor().Fields().ByName("seconds"), protoreflect.ValueOfInt64(int64(*n)))
		return
	}
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		switch {
		case f.IsMap():
			m.Mutable(f).Map().Set(protoreflect.ValueOfString("REASON").MapKey(), scalar(f.MapValue(), n))
		case f.IsList() && f.Message() != nil:
			fill(m.Mutable(f).List().AppendMutable().Message(), n)
		case f.IsList():
			m.Mutable(f).List().Append(scalar(f, n))
		case f.Message() != nil:
			fill(m.Mutable(f).Message(), n)
		default:
			m.Set(f, scalar(f, n))
		}
	}
}

func scalar(f protoreflect.FieldDescriptor, n *uint64) protoreflect.Value {
	*n++
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(f.Enum().Values().Get(f.Enum().Values().Len() - 1).Number())
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("word")
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(*n))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(*n))
	default:
		return protoreflect.ValueOfUint64(*n)
	}
}
