package chat

import (
	"strings"

	"github.com/kvscout/kvscout/render/pyval"
)

func splitArgs(a arguments) (sep string, blanks bool, count int, err error) {
	v, err := a.bind("split()", "sep", "maxsplit")
	if err != nil {
		return "", false, 0, err
	}
	if count, err = integer(v[1], "maxsplit", -1); err != nil {
		return "", false, 0, err
	}
	if _, none := v[0].(pyval.None); v[0] == nil || none {
		return "", true, count, nil
	}
	if sep, err = text(v[0], "separator", ""); err == nil && sep == "" {
		err = failf("empty separator")
	}
	return sep, false, count, err
}

func (st *state) texts(parts []string) (pyval.Value, error) {
	if err := st.grow(32 * len(parts)); err != nil {
		return nil, err
	}
	l := &pyval.List{Items: make([]pyval.Value, len(parts))}
	for i, p := range parts {
		l.Items[i] = p
	}
	return l, nil
}

func strSplit(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
	sep, blanks, count, err := splitArgs(a)
	if err != nil {
		return nil, err
	}
	s := self.(string)
	if err := st.grow(len(s)); err != nil {
		return nil, err
	}
	if blanks {
		return st.texts(splitBlanks(s, count))
	}
	if count >= 0 {
		return st.texts(strings.SplitN(s, sep, count+1))
	}
	return st.texts(strings.Split(s, sep))
}

// splitBlanks splits at runs of white space; blanks at either end make no part.
func splitBlanks(s string, count int) []string {
	var parts []string
	for {
		s = strings.TrimLeftFunc(s, pyval.IsSpace)
		if s == "" {
			return parts
		}
		if count >= 0 && len(parts) == count {
			return append(parts, strings.TrimRightFunc(s, pyval.IsSpace))
		}
		end := strings.IndexFunc(s, pyval.IsSpace)
		if end < 0 {
			return append(parts, s)
		}
		parts = append(parts, s[:end])
		s = s[end:]
	}
}

func strRsplit(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
	sep, blanks, count, err := splitArgs(a)
	if err != nil {
		return nil, err
	}
	s := self.(string)
	if err := st.grow(len(s)); err != nil {
		return nil, err
	}
	if count < 0 {
		return strSplit(st, self, a)
	}
	var parts []string // from the end
	if blanks {
		parts = rsplitBlanks(s, count)
	} else {
		for len(parts) < count {
			i := strings.LastIndex(s, sep)
			if i < 0 {
				break
			}
			parts = append(parts, s[i+len(sep):])
			s = s[:i]
		}
		parts = append(parts, s)
	}
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return st.texts(parts)
}

func rsplitBlanks(s string, count int) []string {
	var parts []string
	for {
		s = strings.TrimRightFunc(s, pyval.IsSpace)
		if s == "" {
			return parts
		}
		if len(parts) == count {
			return append(parts, strings.TrimLeftFunc(s, pyval.IsSpace))
		}
		i := strings.LastIndexFunc(s, pyval.IsSpace)
		if i < 0 {
			return append(parts, s)
		}
		_, size := pyval.DecodeRune(s[i:])
		parts = append(parts, s[i+size:])
		s = s[:i]
	}
}

// lineEnd gives the place and length of the first line end of s; -1 if there is none.
func lineEnd(s string) (at, length int) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\r' && strings.HasPrefix(s[i:], "\r\n"):
			return i, 2
		case c >= '\n' && c <= '\r' || c >= 0x1c && c <= 0x1e:
			return i, 1
		case c == 0xc2 && strings.HasPrefix(s[i:], "\u0085"):
			return i, 2
		case c == 0xe2 && (strings.HasPrefix(s[i:], "\u2028") || strings.HasPrefix(s[i:], "\u2029")):
			return i, 3
		}
	}
	return -1, 0
}

// splitLines is str.splitlines.
func splitLines(s string, keep bool) []string {
	var lines []string
	for s != "" {
		at, length := lineEnd(s)
		if at < 0 {
			return append(lines, s)
		}
		if keep {
			lines = append(lines, s[:at+length])
		} else {
			lines = append(lines, s[:at])
		}
		s = s[at+length:]
	}
	return lines
}

func strSplitlines(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
	v, err := a.bind("splitlines()", "keepends")
	if err != nil {
		return nil, err
	}
	if err := st.grow(len(self.(string))); err != nil {
		return nil, err
	}
	return st.texts(splitLines(self.(string), v[0] != nil && pyval.Truth(v[0])))
}

func partition(last bool) methodFunc {
	return func(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
		v, err := a.required("partition()", "sep")
		if err != nil {
			return nil, err
		}
		sep, ok := v[0].(string)
		if !ok {
			return nil, failf("separator must be str, not %s", pyval.TypeName(v[0]))
		}
		if sep == "" {
			return nil, failf("empty separator")
		}
		s := self.(string)
		if err := st.step(1 + len(s)>>6); err != nil {
			return nil, err
		}
		i := strings.Index(s, sep)
		if last {
			i = strings.LastIndex(s, sep)
		}
		switch {
		case i >= 0:
			return pyval.NewTuple(s[:i], sep, s[i+len(sep):]), nil
		case last:
			return pyval.NewTuple("", "", s), nil
		}
		return pyval.NewTuple(s, "", ""), nil
	}
}

// finder is find, rfind, index or rindex: a place in characters, -1 or an error if there is none.
func finder(last, must bool) methodFunc {
	return func(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
		s, sub, base, err := searchArgs(st, self, a)
		if err != nil {
			return nil, err
		}
		i := -1
		if base >= 0 {
			i = strings.Index(s, sub)
			if last {
				i = strings.LastIndex(s, sub)
			}
		}
		switch {
		case i >= 0:
			return int64(base + pyval.Len(s[:i])), nil
		case must:
			return nil, failf("substring not found")
		}
		return int64(-1), nil
	}
}

// searchArgs reads (sub, start, end) of a search: the part of the text to look at and where it begins, in characters;
// base is -1 if start lies beyond the end.
func searchArgs(st *state, self pyval.Value, a arguments) (s, sub string, base int, err error) {
	v, err := a.bind("find()", "sub", "start", "end")
	if err != nil {
		return "", "", 0, err
	}
	sub, ok := v[0].(string)
	if !ok {
		return "", "", 0, failf("must be str, not %s", pyval.TypeName(v[0]))
	}
	s = self.(string)
	if err := st.step(1 + len(s)>>4); err != nil {
		return "", "", 0, err
	}
	if v[1] == nil && v[2] == nil {
		return s, sub, 0, nil
	}
	n := pyval.Len(s)
	var bound [2]*int
	for i := range bound {
		if _, none := v[i+1].(pyval.None); v[i+1] == nil || none {
			continue
		}
		b, err := integer(v[i+1], "slice index", 0)
		if err != nil {
			return "", "", 0, err
		}
		bound[i] = &b
	}
	if bound[0] != nil && *bound[0] > n {
		return "", sub, -1, nil
	}
	start, count := slicePlan(n, bound[0], bound[1], 1)
	part, err := st.cutText(s, start, count, 1)
	if err != nil {
		return "", "", 0, err
	}
	return part.(string), sub, start, nil
}

func strCount(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
	s, sub, base, err := searchArgs(st, self, a)
	if err != nil || base < 0 {
		return int64(0), err
	}
	if sub == "" {
		return int64(pyval.Len(s) + 1), nil
	}
	return int64(strings.Count(s, sub)), nil
}
