package chat

import (
	"strings"
	"unicode"

	"github.com/kvscout/kvscout/render/pyval"
)

func filterTrim(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	s, err := st.softText(v)
	if err != nil {
		return nil, err
	}
	p, err := a.bind("trim", "chars")
	if err != nil {
		return nil, err
	}
	if p[0] == nil {
		return strip(strings.TrimFunc)(st, s, arguments{})
	}
	return strip(strings.TrimFunc)(st, s, arguments{pos: p})
}

func filterReplace(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.bind("replace", "old", "new", "count")
	if err != nil {
		return nil, err
	}
	if p[0] == nil || p[1] == nil {
		return nil, failf("replace needs 2 arguments")
	}
	s, err := st.str(v)
	if err != nil {
		return nil, err
	}
	old, err := st.str(p[0])
	if err != nil {
		return nil, err
	}
	repl, err := st.str(p[1])
	if err != nil {
		return nil, err
	}
	count := -1
	if _, none := p[2].(pyval.None); p[2] != nil && !none {
		if count, err = integer(p[2], "count", -1); err != nil {
			return nil, err
		}
	}
	return st.replace(s, old, repl, count)
}

func filterIndent(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.bind("indent", "width", "first", "blank")
	if err != nil {
		return nil, err
	}
	s, ok := v.(string)
	if !ok {
		switch v := v.(type) {
		case *undefined:
			return nil, v.fail()
		case markup:
			return nil, unsupportedf("indent of marked up text")
		}
		return nil, failf("can only indent text, not %s", pyval.TypeName(v))
	}
	by, ok := p[0].(string)
	if !ok {
		n, err := integer(p[0], "width", 4)
		if err != nil {
			return nil, err
		}
		if n > maxWidth {
			return nil, limitf("indent of more than %d", maxWidth)
		}
		by = strings.Repeat(" ", max(n, 0))
	}
	lines := splitLines(s+"\n", false)
	if err := st.grow(len(s) + len(lines)*(len(by)+1)); err != nil {
		return nil, err
	}
	first := p[1] != nil && pyval.Truth(p[1])
	blank := p[2] != nil && pyval.Truth(p[2])
	for i, line := range lines {
		if i == 0 && first || i > 0 && (blank || line != "") {
			lines[i] = by + line
		}
	}
	return strings.Join(lines, "\n"), nil
}

func filterCenter(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.bind("center", "width")
	if err != nil {
		return nil, err
	}
	width, err := integer(p[0], "width", 80)
	if err != nil {
		return nil, err
	}
	s, err := st.softText(v)
	if err != nil {
		return nil, err
	}
	return st.pad(s, " ", width, true, true)
}

func filterTruncate(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.bind("truncate", "length", "killwords", "end", "leeway")
	if err != nil {
		return nil, err
	}
	s, ok := v.(string)
	if !ok {
		return nil, unsupportedf("truncate of %s", typeName(v))
	}
	length, err := integer(p[0], "length", 255)
	if err != nil {
		return nil, err
	}
	end, err := text(p[2], "end", "...")
	if err != nil {
		return nil, err
	}
	leeway, err := integer(p[3], "leeway", 5)
	if err != nil {
		return nil, err
	}
	keep := length - pyval.Len(end)
	if keep < 0 || leeway < 0 {
		return nil, failf("expected length >= the length of end, and leeway >= 0")
	}
	if pyval.Len(s) <= length+leeway {
		return s, nil
	}
	s = s[:pyval.Offset(s, keep)]
	if p[1] == nil || !pyval.Truth(p[1]) {
		if i := strings.LastIndexByte(s, ' '); i >= 0 {
			s = s[:i]
		}
	}
	return s + end, st.grow(len(s) + len(end))
}

func filterWordcount(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	s, err := st.softText(v)
	if err != nil {
		return nil, err
	}
	n := int64(0)
	in := false
	for _, r := range s {
		word := r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r)
		if word && !in {
			n++
		}
		in = word
	}
	return n, a.none("wordcount")
}

func filterFormat(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	s, err := st.softText(v)
	if err != nil {
		return nil, err
	}
	if len(a.pos) > 0 && len(a.kw) > 0 {
		return nil, failf("can't handle positional and keyword arguments at the same time")
	}
	if len(a.kw) == 0 {
		return st.percent(s, &pyval.Tuple{Items: a.pos})
	}
	d := &pyval.Dict{}
	for _, k := range a.kw {
		d.Set(k.name, k.value)
	}
	return st.percent(s, d)
}

func filterJoin(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.bind("join", "d", "attribute")
	if err != nil {
		return nil, err
	}
	sep := ""
	if p[0] != nil {
		if sep, err = st.str(p[0]); err != nil {
			return nil, err
		}
	}
	items, err := st.items(v)
	if err != nil {
		return nil, err
	}
	if _, none := p[1].(pyval.None); p[1] != nil && !none {
		get, err := attrGetter(p[1], nil, false)
		if err != nil {
			return nil, err
		}
		if items, err = mapAll(st, items, get); err != nil {
			return nil, err
		}
	}
	parts := make([]string, len(items))
	for i, item := range items {
		if parts[i], err = st.str(item); err != nil {
			return nil, err
		}
	}
	return st.join(sep, parts)
}
