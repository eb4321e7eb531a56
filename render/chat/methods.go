package chat

import (
	"strings"

	"github.com/kvscout/kvscout/render/pyval"
)

var (
	dictMethods map[string]methodFunc
	listMethods map[string]methodFunc
	strMethods  map[string]methodFunc
)

func init() {
	dictMethods = map[string]methodFunc{
		"get": dictGet, "copy": dictCopy,
		"items": dictViewOf("items"), "keys": dictViewOf("keys"), "values": dictViewOf("values"),
	}
	listMethods = map[string]methodFunc{"count": listCount, "index": listIndex, "copy": listCopy}
	strMethods = map[string]methodFunc{
		"upper": textOnly(pyval.Upper), "lower": textOnly(pyval.Lower), "title": textOnly(pyval.Title),
		"capitalize": textOnly(pyval.Capitalize), "swapcase": textOnly(pyval.SwapCase),
		"strip": strip(strings.TrimFunc), "lstrip": strip(strings.TrimLeftFunc), "rstrip": strip(strings.TrimRightFunc),
		"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
		"removeprefix": cutAffix(strings.TrimPrefix), "removesuffix": cutAffix(strings.TrimSuffix),
		"split": strSplit, "rsplit": strRsplit, "splitlines": strSplitlines,
		"partition": partition(false), "rpartition": partition(true),
		"replace": strReplace, "join": strJoin, "format": strFormat,
		"find": finder(false, false), "rfind": finder(true, false), "index": finder(false, true), "rindex": finder(true, true),
		"count": strCount, "zfill": strZfill,
		"center": padder(true, true), "ljust": padder(false, true), "rjust": padder(true, false),
		"isdigit": allRunes(isDigitRune), "isdecimal": allRunes(isDecimalRune), "isnumeric": allRunes(isNumericRune),
		"isalpha": allRunes(isAlphaRune), "isalnum": allRunes(isAlnumRune), "isspace": allRunes(pyval.IsSpace),
		"isprintable": allOrNone(pyval.Printable), "isascii": allOrNone(func(r rune) bool { return r < 0x80 }),
		"islower": cased(false), "isupper": cased(true),
	}
}

func dictGet(_ *state, self pyval.Value, a arguments) (pyval.Value, error) {
	if len(a.kw) > 0 {
		return nil, failf("get() takes no keyword arguments")
	}
	v, err := a.bind("get()", "key", "default")
	if err != nil {
		return nil, err
	}
	if v[0] == nil {
		return nil, failf("get expected at least 1 argument")
	}
	found, ok, err := self.(*pyval.Dict).Lookup(v[0])
	switch {
	case ok || err != nil:
		return found, err
	case v[1] == nil:
		return pyval.None{}, nil
	}
	return v[1], nil
}

func dictCopy(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
	d := self.(*pyval.Dict)
	if err := st.grow(64 * d.Len()); err != nil {
		return nil, err
	}
	return d.Copy(), a.none("copy()")
}

func dictViewOf(kind string) methodFunc {
	return func(_ *state, self pyval.Value, a arguments) (pyval.Value, error) {
		return &dictView{kind: kind, dict: self.(*pyval.Dict)}, a.none(kind + "()")
	}
}

func listCount(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
	v, err := a.required("count()", "value")
	if err != nil {
		return nil, err
	}
	items, _ := st.items(self)
	n := int64(0)
	for _, item := range items {
		same, err := st.equal(item, v[0])
		if err != nil {
			return nil, err
		}
		if same {
			n++
		}
	}
	return n, nil
}

func listIndex(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
	v, err := a.required("index()", "value")
	if err != nil {
		return nil, err
	}
	items, _ := st.items(self)
	for i, item := range items {
		if same, err := st.equal(item, v[0]); same || err != nil {
			return int64(i), err
		}
	}
	return nil, failf("value is not in list")
}

func listCopy(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
	l, ok := self.(*pyval.List)
	if !ok {
		return nil, failf("tuple has no attribute 'copy'")
	}
	items, err := st.joined(l.Items, nil)
	if err == nil {
		err = a.none("copy()")
	}
	return &pyval.List{Items: items}, err
}

// required is bind where every parameter must have a value.
func (a arguments) required(what string, names ...string) ([]pyval.Value, error) {
	v, err := a.bind(what, names...)
	if err != nil {
		return nil, err
	}
	for i := range v {
		if v[i] == nil {
			return nil, failf("%s needs %d argument(s)", what, len(names))
		}
	}
	return v, nil
}

// text gives an argument that must be a text; what is absent or None is def.
func text(v pyval.Value, what, def string) (string, error) {
	switch v := v.(type) {
	case nil, pyval.None:
		return def, nil
	case string:
		return v, nil
	case markup:
		return "", unsupportedf("marked up text for %s", what)
	}
	return "", failf("%s must be str, not %s", what, pyval.TypeName(v))
}

// integer gives an argument that must be an int; what is absent is def.
func integer(v pyval.Value, what string, def int) (int, error) {
	if v == nil {
		return def, nil
	}
	n, ok := indexOf(v)
	if !ok {
		return 0, failf("%s must be int, not %s", what, pyval.TypeName(v))
	}
	return n, nil
}

func textOnly(f func(string) string) methodFunc {
	return func(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
		if err := st.grow(3 * len(self.(string))); err != nil {
			return nil, err
		}
		return f(self.(string)), a.none("method")
	}
}

// strip is strip, lstrip or rstrip: of white space, or of the characters of the argument.
func strip(trim func(string, func(rune) bool) string) methodFunc {
	return func(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
		v, err := a.bind("strip()", "chars")
		if err != nil {
			return nil, err
		}
		s := self.(string)
		if err := st.step(1 + len(s)>>6); err != nil {
			return nil, err
		}
		if _, none := v[0].(pyval.None); v[0] == nil || none {
			return trim(s, pyval.IsSpace), nil
		}
		chars, err := text(v[0], "strip argument", "")
		if err != nil {
			return nil, err
		}
		if pyval.HasSurrogate(s) || pyval.HasSurrogate(chars) {
			return nil, unsupportedf("strip of lone surrogates")
		}
		return trim(s, func(r rune) bool { return strings.ContainsRune(chars, r) }), nil
	}
}

// affix is startswith or endswith, with one text or a tuple of them.
func affix(has func(s, affix string) bool) methodFunc {
	return func(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
		if len(a.pos) > 1 {
			return nil, unsupportedf("startswith or endswith with bounds")
		}
		v, err := a.required("startswith()", "prefix")
		if err != nil {
			return nil, err
		}
		choices := []pyval.Value{v[0]}
		if t, ok := v[0].(*pyval.Tuple); ok {
			choices = t.Items
		}
		for _, c := range choices {
			s, ok := c.(string)
			if !ok {
				return nil, failf("first argument must be str or a tuple of str, not %s", pyval.TypeName(c))
			}
			if has(self.(string), s) {
				return true, nil
			}
		}
		return false, st.step(len(choices))
	}
}

func cutAffix(cut func(s, affix string) string) methodFunc {
	return func(_ *state, self pyval.Value, a arguments) (pyval.Value, error) {
		v, err := a.required("removeprefix()", "prefix")
		if err != nil {
			return nil, err
		}
		s, ok := v[0].(string)
		if !ok {
			return nil, failf("argument must be str, not %s", pyval.TypeName(v[0]))
		}
		return cut(self.(string), s), nil
	}
}

func strJoin(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
	v, err := a.required("join()", "iterable")
	if err != nil {
		return nil, err
	}
	if u, ok := v[0].(*undefined); ok && u.unsafe {
		return nil, u.fail()
	}
	items, err := st.items(v[0])
	if err != nil {
		return nil, err
	}
	parts := make([]string, len(items))
	for i, item := range items {
		s, ok := item.(string)
		if !ok {
			if _, ok := item.(markup); ok {
				return nil, unsupportedf("join of marked up text")
			}
			return nil, failf("sequence item %d: expected str instance, %s found", i, pyval.TypeName(item))
		}
		parts[i] = s
	}
	return st.join(self.(string), parts)
}

func (st *state) join(sep string, parts []string) (pyval.Value, error) {
	n := len(sep) * len(parts)
	for _, p := range parts {
		n += len(p)
	}
	if err := st.grow(n); err != nil {
		return nil, err
	}
	return strings.Join(parts, sep), nil
}

func strReplace(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
	v, err := a.bind("replace()", "old", "new", "count")
	if err != nil {
		return nil, err
	}
	if v[0] == nil || v[1] == nil {
		return nil, failf("replace expected at least 2 arguments")
	}
	old, ok1 := v[0].(string)
	repl, ok2 := v[1].(string)
	if !ok1 || !ok2 {
		return nil, failf("replace() arguments must be str")
	}
	count, err := integer(v[2], "count", -1)
	if err != nil {
		return nil, err
	}
	return st.replace(self.(string), old, repl, count)
}

func (st *state) replace(s, old, repl string, count int) (pyval.Value, error) {
	n := 0
	if old == "" {
		if pyval.HasSurrogate(s) {
			return nil, unsupportedf("replace between lone surrogates")
		}
		n = pyval.Len(s) + 1
	} else {
		n = strings.Count(s, old)
	}
	if count >= 0 {
		n = min(n, count)
	}
	if len(repl) > 0 && n > st.text/len(repl) {
		return nil, limitf("a text of more than %d bytes", st.text)
	}
	if err := st.grow(len(s) + n*len(repl)); err != nil {
		return nil, err
	}
	return strings.Replace(s, old, repl, n), nil
}
