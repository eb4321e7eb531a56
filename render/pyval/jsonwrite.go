package pyval

import (
	"fmt"
	"math"
	"math/big"
	"sort"
	"strconv"
	"strings"
)

// Dump says how to write JSON, with the arguments of json.dumps.
type Dump struct {
	EnsureASCII bool
	SortKeys    bool
	// Indent is what each level is indented with; nil writes one line.
	Indent *string
	// ItemSeparator and KeySeparator are used if Separators is set; otherwise Python's defaults.
	Separators                  bool
	ItemSeparator, KeySeparator string
	// Max bounds the text in bytes, give or take one value; 0 means MaxText.
	Max int
}

// JSON is json.dumps(v). It errs with ErrType for what Python cannot serialize, and with ErrTooBig.
func (o Dump) JSON(v Value) (string, error) {
	w := writer{Dump: o, item: ", ", key: ": "}
	if w.Max == 0 {
		w.Max = MaxText
	}
	if o.Indent != nil {
		w.item = ","
	}
	if o.Separators {
		w.item, w.key = o.ItemSeparator, o.KeySeparator
	}
	if err := w.value(v, 0); err != nil {
		return "", err
	}
	return string(w.b), nil
}

type writer struct {
	Dump
	b         []byte
	item, key string
}

func (w *writer) value(v Value, depth int) error {
	if depth > maxDepth || len(w.b) > w.Max {
		return ErrTooBig
	}
	var err error
	switch v := v.(type) {
	case None:
		w.b = append(w.b, "null"...)
	case bool:
		w.b = strconv.AppendBool(w.b, v)
	case int64:
		w.b = strconv.AppendInt(w.b, v, 10)
	case *big.Int:
		w.b, err = appendBig(w.b, v)
	case float64:
		w.b = appendJSONFloat(w.b, v)
	case string:
		w.str(v)
	case *List:
		err = w.list(v.Items, depth)
	case *Tuple:
		err = w.list(v.Items, depth)
	case *Dict:
		err = w.dict(v, depth)
	default:
		return fmt.Errorf("%w: object of type %s is not JSON serializable", ErrType, TypeName(v))
	}
	return err
}

func appendJSONFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "NaN"...)
	case math.IsInf(f, 1):
		return append(b, "Infinity"...)
	case math.IsInf(f, -1):
		return append(b, "-Infinity"...)
	}
	return appendFloat(b, f)
}

func (w *writer) newline(depth int) {
	if w.Indent != nil {
		w.b = append(w.b, '\n')
		for range depth {
			w.b = append(w.b, *w.Indent...)
		}
	}
}

func (w *writer) list(items []Value, depth int) error {
	if len(items) == 0 {
		w.b = append(w.b, "[]"...)
		return nil
	}
	w.b = append(w.b, '[')
	for i, item := range items {
		if i > 0 {
			w.b = append(w.b, w.item...)
		}
		w.newline(depth + 1)
		if err := w.value(item, depth+1); err != nil {
			return err
		}
	}
	w.newline(depth)
	w.b = append(w.b, ']')
	return nil
}

func (w *writer) dict(d *Dict, depth int) error {
	if d.Len() == 0 {
		w.b = append(w.b, "{}"...)
		return nil
	}
	entries := d.entries
	if w.SortKeys {
		var err error
		if entries, err = sortedEntries(entries); err != nil {
			return err
		}
	}
	w.b = append(w.b, '{')
	for i, e := range entries {
		if i > 0 {
			w.b = append(w.b, w.item...)
		}
		w.newline(depth + 1)
		if err := w.keyText(e.Key); err != nil {
			return err
		}
		w.b = append(w.b, w.key...)
		if err := w.value(e.Value, depth+1); err != nil {
			return err
		}
	}
	w.newline(depth)
	w.b = append(w.b, '}')
	return nil
}

func sortedEntries(entries []Entry) ([]Entry, error) {
	entries = append([]Entry(nil), entries...)
	var failed error
	sort.SliceStable(entries, func(i, j int) bool {
		c, ok, _, err := Compare(entries[i].Key, entries[j].Key)
		if err != nil {
			failed = err
		}
		return ok && c < 0
	})
	return entries, failed
}

func (w *writer) keyText(k Value) error {
	switch k := k.(type) {
	case string:
		w.str(k)
		return nil
	case None, bool, int64, *big.Int, float64:
		w.b = append(w.b, '"')
		if err := w.value(k, 0); err != nil {
			return err
		}
		w.b = append(w.b, '"')
		return nil
	}
	return fmt.Errorf("%w: keys must be str, int, float, bool or None, not %s", ErrType, TypeName(k))
}

// str writes a string as Python's encoder does: the short escapes, \u00xx for other controls, nothing for HTML.
func (w *writer) str(s string) {
	if w.EnsureASCII && strings.IndexFunc(s, func(r rune) bool { return r >= 0x7f }) >= 0 {
		w.asciiStr(s)
		return
	}
	w.b = append(w.b, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		w.b = append(w.b, s[start:i]...)
		w.b = appendEscape(w.b, rune(c))
		start = i + 1
	}
	w.b = append(append(w.b, s[start:]...), '"')
}

func (w *writer) asciiStr(s string) {
	w.b = append(w.b, '"')
	for s != "" {
		r, size := DecodeRune(s)
		s = s[size:]
		switch {
		case r >= 0x10000:
			r -= 0x10000
			w.b = appendEscape(w.b, 0xd800+r>>10)
			w.b = appendEscape(w.b, 0xdc00+r&0x3ff)
		case r < 0x20 || r == '"' || r == '\\' || r >= 0x7f:
			w.b = appendEscape(w.b, r)
		default:
			w.b = append(w.b, byte(r))
		}
	}
	w.b = append(w.b, '"')
}

func appendEscape(b []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\b':
		return append(b, `\b`...)
	case '\f':
		return append(b, `\f`...)
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	}
	return appendHex(append(b, '\\', 'u'), r, 4)
}
