package codec

import (
	"bytes"
	"unicode/utf8"

	"github.com/segmentio/asm/base64" // decodes a prompt ten times as fast as encoding/base64
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// jsonPart is one of the members that may be large, and are read here in their plain forms. Protobuf reads all others, and
// other forms of these, in an object of their own.
type jsonPart uint8

const (
	partModel jsonPart = 1 << iota
	partTokens
	partHashes
	partCandidates
)

// readJSON reads a request. It is false for one that protobuf is to judge: a broken one, or one of an unusual form.
func (r *ScoreRequest) readJSON(data []byte) bool {
	var rest []byte // of the object, as members behind commas
	var seen jsonPart
	ok := eachMember(data, func(name, value []byte) bool {
		part, read := r.jsonPart(name)
		if part&seen != 0 {
			return false // twice, perhaps by its other name
		}
		seen |= part
		if part != 0 && read(value) {
			return true
		}
		rest = append(append(append(append(rest, ",\""...), name...), "\":"...), value...)
		return true
	})
	if !ok {
		return false
	}
	if rest != nil {
		rest[0] = '{'
		var other kvscoutv1.ScoreRequest
		if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(append(rest, '}'), &other) != nil {
			return false
		}
		proto.Merge(&r.ScoreRequest, &other)
	}
	return true
}

// readJSON reads a batch that is nothing but its requests. It is false for one that protobuf is to judge.
func (r *ScoreBatchRequest) readJSON(data []byte) bool {
	seen := false
	return eachMember(data, func(name, value []byte) bool {
		if string(name) != "requests" || seen {
			return false
		}
		seen = true
		return eachElement(value, func(one []byte) bool {
			req := new(ScoreRequest)
			r.requests = append(r.requests, req)
			r.Requests = append(r.Requests, &req.ScoreRequest)
			return req.readJSON(one)
		})
	})
}

// jsonPart is the part that a name means, 0 for none, with what reads it. That is false for values of another form, and
// leaves nothing then.
func (r *ScoreRequest) jsonPart(name []byte) (jsonPart, func([]byte) bool) {
	switch string(name) {
	case "model":
		return partModel, r.readJSONModel
	case "tokens":
		return partTokens, r.readJSONTokens
	case "blockHashes", "block_hashes":
		return partHashes, r.readJSONHashes
	case "candidates":
		return partCandidates, r.readJSONCandidates
	default:
		return 0, nil
	}
}

func (r *ScoreRequest) readJSONModel(value []byte) (ok bool) {
	text, ok := plainText(value)
	if ok {
		r.Model, ok = r.mem().setModel(text)
	}
	return ok
}

func (r *ScoreRequest) readJSONTokens(value []byte) bool {
	members := 0
	var name, inner []byte
	if !eachMember(value, func(n, v []byte) bool { members++; name, inner = n, v; return true }) || members != 1 {
		return false
	}
	switch string(name) {
	case "packed":
		packed, ok := r.base64(inner)
		if !ok {
			return false
		}
		r.tokens.Packed = packed
	case "ids":
		ids, ok := plainNumbers(r.mem().ids[:0], inner)
		r.memory.ids = ids
		if !ok {
			return false
		}
		r.tokens.Ids = ids
	default:
		return false
	}
	r.Tokens = &r.tokens
	return true
}

func (r *ScoreRequest) readJSONHashes(value []byte) bool {
	var size, packed, prompt []byte
	ok := eachMember(value, func(n, v []byte) bool {
		var to *[]byte
		switch string(n) {
		case "blockSize", "block_size":
			to = &size
		case "packed":
			to = &packed
		case "promptTokens", "prompt_tokens":
			to = &prompt
		}
		if to == nil || *to != nil {
			return false
		}
		*to = v
		return true
	})
	if !ok {
		return false
	}
	var numbers [2]uint32
	for i, text := range [][]byte{size, prompt} {
		if text == nil {
			continue
		}
		v, n := plainNumber(text)
		if n != len(text) || v > 1<<32-1 {
			return false
		}
		numbers[i] = uint32(v)
	}
	if packed != nil {
		if r.hashes.Packed, ok = r.base64(packed); !ok {
			return false
		}
	}
	r.hashes.BlockSize, r.hashes.PromptTokens = numbers[0], numbers[1]
	r.BlockHashes = &r.hashes
	return true
}

func (r *ScoreRequest) readJSONCandidates(value []byte) bool {
	m := r.mem()
	if !eachElement(value, func(v []byte) bool {
		text, ok := plainText(v)
		return ok && m.addName(text)
	}) {
		m.names = m.names[:0]
		return false
	}
	if len(m.names) > 0 {
		r.Candidates = m.names
	}
	return true
}

// base64 decodes a text of the standard alphabet with padding into the request's memory.
func (r *ScoreRequest) base64(value []byte) ([]byte, bool) {
	n := len(value) - 2
	if n < 0 || value[0] != '"' || n%4 != 0 {
		return nil, false
	}
	if n == 0 {
		return []byte{}, true
	}
	out := r.mem().bytes(n / 4 * 3)
	got, err := base64.StdEncoding.Decode(out, value[1:1+n])
	return out[:got], err == nil
}

// plainText is a string without escapes.
func plainText(value []byte) ([]byte, bool) {
	if len(value) < 2 || value[0] != '"' {
		return nil, false
	}
	text := value[1 : len(value)-1]
	for _, c := range text {
		if c < ' ' || c == '\\' {
			return nil, false
		}
	}
	return text, utf8.Valid(text)
}

// plainNumbers appends a list of numbers without sign, fraction or exponent.
func plainNumbers(list []int64, value []byte) ([]int64, bool) {
	if len(value) < 2 || value[0] != '[' || value[len(value)-1] != ']' {
		return list, false
	}
	for i := 1; ; {
		if value[i]-'0' > 9 {
			i += blanks(value[i:])
		}
		// As plainNumber, which is too slow to be called for each of them.
		first, v := i, int64(0)
		for c := value[i] - '0'; c <= 9; c = value[i] - '0' { // the last byte is a bracket
			v = v*10 + int64(c)
			i++
		}
		if n := i - first; n == 0 || n > 18 || n > 1 && value[first] == '0' {
			return list, false // an empty list, too
		}
		list = append(list, v)
		if value[i] != ',' && value[i] != ']' {
			i += blanks(value[i:])
		}
		switch value[i] {
		case ',':
			i++
		case ']':
			return list, true
		default:
			return list, false
		}
	}
}

// plainNumber is the number that b begins with, and how many bytes it has; 0 for what is none or is too large.
func plainNumber(b []byte) (v int64, n int) {
	for n < len(b) && b[n]-'0' <= 9 {
		v = v*10 + int64(b[n]-'0')
		n++
	}
	if n > 18 || n > 1 && b[0] == '0' {
		return 0, 0
	}
	return v, n
}

// blanks counts the blanks that b begins with.
func blanks(b []byte) (n int) {
	for n < len(b) && (b[n] == ' ' || b[n] == '\n' || b[n] == '\r' || b[n] == '\t') {
		n++
	}
	return n
}

// eachMember calls do for the members of an object that is all of data, but for blanks around it. It is false when do is,
// and for what is no object or has names with escapes; of values it knows only where they end.
func eachMember(data []byte, do func(name, value []byte) bool) bool {
	return each(data, '{', '}', func(b []byte) (n int) {
		end := valueEnd(b)
		if end == 0 || b[0] != '"' {
			return 0
		}
		name, ok := plainText(b[:end])
		at := end + blanks(b[end:])
		if !ok || at >= len(b) || b[at] != ':' {
			return 0
		}
		at++
		at += blanks(b[at:])
		end = valueEnd(b[at:])
		if end == 0 || !do(name, b[at:at+end]) {
			return 0
		}
		return at + end
	})
}

// eachElement calls do for the elements of a list, as eachMember does for members.
func eachElement(data []byte, do func(value []byte) bool) bool {
	return each(data, '[', ']', func(b []byte) int {
		end := valueEnd(b)
		if end == 0 || !do(b[:end]) {
			return 0
		}
		return end
	})
}

// each calls one for what stands between commas; it says how many bytes that takes, 0 to give up.
func each(data []byte, first, last byte, one func([]byte) int) bool {
	i := blanks(data)
	if i == len(data) || data[i] != first {
		return false
	}
	i++
	i += blanks(data[i:])
	if i < len(data) && data[i] == last {
		return i+1+blanks(data[i+1:]) == len(data)
	}
	for {
		n := one(data[i:])
		if n == 0 {
			return false
		}
		i += n
		i += blanks(data[i:])
		switch {
		case i == len(data):
			return false
		case data[i] == last:
			return i+1+blanks(data[i+1:]) == len(data)
		case data[i] != ',':
			return false
		}
		i++
		i += blanks(data[i:])
	}
}

// valueEnd is where the value ends that b begins with, 0 where it does not. It does not tell whether that is a value.
func valueEnd(b []byte) int {
	depth, tried := 0, false
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			end := textEnd(b[i:])
			if end == 0 {
				return 0
			}
			if i += end - 1; depth == 0 {
				return i + 1
			}
		case '[':
			// A long list of numbers is passed over at once. Only one is tried, or hostile lists would take their square.
			if !tried {
				tried = true
				i += max(0, flatEnd(b[i:])-1)
			}
			depth++
		case '{':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return i
			}
		}
	}
	return 0
}

// flatEnd is where the rest of a list without strings and other lists begins, at its end; 0 for other lists.
func flatEnd(b []byte) int {
	end := bytes.IndexByte(b, ']')
	if end < 0 || bytes.IndexByte(b[1:end], '"') >= 0 || bytes.IndexByte(b[1:end], '[') >= 0 || bytes.IndexByte(b[1:end], '{') >= 0 || bytes.IndexByte(b[1:end], '}') >= 0 {
		return 0
	}
	return end
}

// textEnd is where the string ends that b begins with, 0 where it does not.
func textEnd(b []byte) int {
	for i := 1; i < len(b); {
		end := bytes.IndexByte(b[i:], '"')
		if end < 0 {
			return 0
		}
		slash := bytes.IndexByte(b[i:i+end], '\\')
		if slash < 0 {
			return i + end + 1
		}
		i += slash + 2
	}
	return 0
}
