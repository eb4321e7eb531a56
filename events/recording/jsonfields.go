package recording

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxFields bounds the members of one line.
const maxFields = 256

// fields are the members of one object that were not asked for yet, without those that are null. Its methods remove
// what they return; absent members give the zero value. The first fault stays in err. Faults name the member and never
// its value, which may be a salt (invariant 7).
type fields struct {
	left map[string]json.RawMessage
	err  error
}

func newFields(object []byte) (*fields, error) {
	f := &fields{left: make(map[string]json.RawMessage)}
	err := eachMember(object, maxFields, func(name string, value json.RawMessage) error {
		if _, dup := f.left[name]; dup {
			return fmt.Errorf("member %.40q is given twice", name)
		}
		f.left[name] = value
		return nil
	})
	for name, value := range f.left {
		if string(value) == "null" {
			delete(f.left, name)
		}
	}
	return f, err
}

func (f *fields) take(name string) (json.RawMessage, bool) {
	value, ok := f.left[name]
	delete(f.left, name)
	return value, ok && f.err == nil
}

func (f *fields) fail(name, what string) {
	if f.err == nil {
		f.err = fmt.Errorf("%s is %s", name, what)
	}
}

// must says that the member called name has to be there.
func (f *fields) must(name string) {
	if _, ok := f.left[name]; !ok {
		f.fail(name, "missing")
	}
}

func (f *fields) text(name string) string {
	value, ok := f.take(name)
	if !ok {
		return ""
	}
	s, ok := jsonText(value)
	if !ok {
		f.fail(name, "no string of Unicode text")
	}
	return s
}

// integer takes integers only: 1.0 and 1e3 are refused.
func (f *fields) integer(name string) int64 {
	value, ok := f.take(name)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		f.fail(name, "no 64-bit integer")
	}
	return n
}

func (f *fields) flag(name string) bool {
	value, ok := f.take(name)
	if ok && string(value) != "true" && string(value) != "false" {
		f.fail(name, "neither true nor false")
	}
	return ok && string(value) == "true"
}

func (f *fields) base64(name string) []byte {
	b, err := base64.StdEncoding.DecodeString(f.text(name))
	if err != nil {
		f.fail(name, "not base64")
	}
	return b
}

func (f *fields) frames(name string) [][]byte {
	var out [][]byte
	f.list(name, func(value json.RawMessage) error {
		s, ok := jsonText(value)
		b, err := base64.StdEncoding.DecodeString(s)
		if !ok || err != nil {
			return errors.New("has an element that is not base64")
		}
		out = append(out, b)
		return nil
	})
	return out
}

// list gives do each element of the array called name.
func (f *fields) list(name string, do func(json.RawMessage) error) {
	if value, ok := f.take(name); ok {
		f.within(name, eachElement(value, maxItems, do))
	}
}

// members gives do each member of the object called name.
func (f *fields) members(name string, do func(string, json.RawMessage) error) {
	if value, ok := f.take(name); ok {
		f.within(name, eachMember(value, maxItems, do))
	}
}

func (f *fields) within(name string, err error) {
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("%s: %w", name, err)
	}
}

// jsonText decodes a JSON string that stands for UTF-8 bytes. The json package would put U+FFFD for the escape of half
// a surrogate pair, which stands for none.
func jsonText(value json.RawMessage) (string, bool) {
	var s string
	if len(value) == 0 || value[0] != '"' || loneSurrogate(value) {
		return "", false
	}
	return s, json.Unmarshal(value, &s) == nil
}

// loneSurrogate says whether a valid JSON string has an escape of half a surrogate pair.
func loneSurrogate(value []byte) bool {
	for i := bytes.IndexByte(value, '\\'); i >= 0 && i < len(value); i++ {
		if value[i] != '\\' {
			continue
		}
		i++
		switch unit := escapedUnit(value[i:]); {
		case unit < 0xd800 || unit > 0xdfff:
		case unit < 0xdc00 && value[i+5] == '\\' && escapedUnit(value[i+6:])&^0x3ff == 0xdc00:
			i += 10
		default:
			return true
		}
	}
	return false
}

// escapedUnit is the UTF-16 unit of an escape, given what follows its backslash; -1 for the other escapes.
func escapedUnit(after []byte) int {
	if len(after) < 5 || after[0] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(after[1:5]), 16, 16)
	if err != nil {
		return -1
	}
	return int(unit)
}

// eachMember walks the members of one JSON object in their order, without making more than one of them at a time.
func eachMember(object []byte, max int, do func(name string, value json.RawMessage) error) error {
	return walk(object, '{', max, func(dec *json.Decoder) error {
		name, err := dec.Token()
		if err != nil {
			return errNotJSON
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return errNotJSON
		}
		return do(name.(string), value) // the decoder lets nothing else stand there
	})
}

// eachElement walks the elements of one JSON array.
func eachElement(array []byte, max int, do func(value json.RawMessage) error) error {
	return walk(array, '[', max, func(dec *json.Decoder) error {
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return errNotJSON
		}
		return do(value)
	})
}

func walk(text []byte, open json.Delim, max int, step func(*json.Decoder) error) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	if first, err := dec.Token(); err != nil || first != open {
		return fmt.Errorf("does not begin with %v", open)
	}
	for n := 0; dec.More(); n++ {
		if n == max {
			return fmt.Errorf("over %d entries", max)
		}
		if err := step(dec); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return errNotJSON
	}
	if _, err := dec.Token(); err != io.EOF {
		return errNotJSON
	}
	return nil
}
