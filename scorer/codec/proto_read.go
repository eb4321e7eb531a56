package codec

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// Fields of ScoreRequest that are read here.
const (
	fieldModel        = 1
	fieldTokens       = 2
	fieldBlockHashes  = 4
	fieldCacheSalt    = 6
	fieldAdapter      = 7
	fieldExtraKey     = 8
	fieldCandidates   = 9
	fieldRole         = 10
	fieldAdapterID    = 12
	fieldReturnTokens = 13
	fieldID           = 50
	fieldMaxWorkers   = 51
	fieldExplain      = 52
	fieldRemember     = 53
)

// read reads a request. It is false for one that protobuf is to judge: a broken one, or one that says the same thing twice.
func (r *ScoreRequest) read(b []byte) bool {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return false
		}
		field, value := b[:n+size], b[n:n+size]
		b = b[n+size:]
		var known, ok bool
		switch typ {
		case protowire.BytesType:
			text, _ := protowire.ConsumeBytes(value)
			known, ok = r.readBytes(num, text)
		case protowire.VarintType:
			v, _ := protowire.ConsumeVarint(value)
			known, ok = r.readVarint(num, v), true
		}
		if !known {
			// Of a message in parts each part may be read for itself.
			ok = proto.UnmarshalOptions{Merge: true}.Unmarshal(field, &r.ScoreRequest) == nil
		}
		if !ok {
			return false
		}
	}
	if r.memory != nil && len(r.memory.names) > 0 {
		r.Candidates = r.memory.names
	}
	return true
}

// readBytes reads a field of text or of a message. ok means something only for known fields.
func (r *ScoreRequest) readBytes(num protowire.Number, b []byte) (known, ok bool) {
	switch num {
	case fieldTokens:
		return true, r.readTokens(b)
	case fieldBlockHashes:
		return true, r.readHashes(b)
	case fieldCandidates:
		return true, r.mem().addName(b)
	case fieldModel:
		r.Model, ok = r.mem().setModel(b)
	case fieldCacheSalt:
		r.CacheSalt, ok = text(b)
	case fieldAdapter:
		r.Adapter, ok = text(b)
	case fieldExtraKey:
		r.ExtraKey, ok = text(b)
	case fieldAdapterID:
		r.AdapterId, ok = text(b)
	case fieldID:
		r.Id, ok = text(b)
	default:
		return false, false
	}
	return true, ok
}

// readVarint reads a field of a number; it is false for those that it does not know.
func (r *ScoreRequest) readVarint(num protowire.Number, v uint64) bool {
	switch num {
	case fieldRole:
		r.Role = kvscoutv1.Role(v)
	case fieldReturnTokens:
		r.ReturnTokens = protowire.DecodeBool(v)
	case fieldMaxWorkers:
		r.MaxWorkers = uint32(v)
	case fieldExplain:
		r.Explain = protowire.DecodeBool(v)
	case fieldRemember:
		r.Remember = protowire.DecodeBool(v)
	default:
		return false
	}
	return true
}

// readTokens reads tokens in packed form; other forms are protobuf's.
func (r *ScoreRequest) readTokens(b []byte) bool {
	if r.Tokens != nil {
		return false
	}
	r.Tokens = &r.tokens
	num, typ, n := protowire.ConsumeTag(b)
	if n > 0 && num == 1 && typ == protowire.BytesType {
		if packed, m := protowire.ConsumeBytes(b[n:]); m >= 0 && n+m == len(b) {
			r.tokens.Packed = r.mem().clone(packed)
			return true
		}
	}
	return proto.Unmarshal(b, r.Tokens) == nil
}

// readHashes reads block_hashes of three plain fields; other forms are protobuf's.
func (r *ScoreRequest) readHashes(b []byte) bool {
	if r.BlockHashes != nil {
		return false
	}
	r.BlockHashes = &r.hashes
	for rest := b; len(rest) > 0; {
		num, typ, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return false
		}
		rest = rest[n:]
		switch {
		case num == 2 && typ == protowire.BytesType && r.hashes.Packed == nil:
			var packed []byte
			if packed, n = protowire.ConsumeBytes(rest); n < 0 {
				return false
			}
			r.hashes.Packed = r.mem().clone(packed)
		case (num == 1 || num == 3) && typ == protowire.VarintType:
			var v uint64
			if v, n = protowire.ConsumeVarint(rest); n < 0 {
				return false
			}
			if num == 1 {
				r.hashes.BlockSize = uint32(v)
			} else {
				r.hashes.PromptTokens = uint32(v)
			}
		default:
			return false
		}
		rest = rest[n:]
	}
	return true
}

// read reads a message of a stream. It is false for one that protobuf is to judge.
func (r *ScoreStreamRequest) read(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	num, typ, n := protowire.ConsumeTag(b)
	if n < 0 || num != 1 || typ != protowire.BytesType {
		return false
	}
	body, m := protowire.ConsumeBytes(b[n:])
	if m < 0 || n+m != len(b) || !r.one.read(body) {
		return false
	}
	r.Request = &r.one.ScoreRequest
	return true
}

// read reads a batch. It is false for one that protobuf is to judge.
func (r *ScoreBatchRequest) read(b []byte) bool {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 || num != 1 || typ != protowire.BytesType {
			return false
		}
		body, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			return false
		}
		b = b[n+m:]
		one := new(ScoreRequest)
		r.requests = append(r.requests, one)
		if !one.read(body) {
			return false
		}
		r.Requests = append(r.Requests, &one.ScoreRequest)
	}
	return true
}
