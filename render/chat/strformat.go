package chat

import (
	"strconv"
	"strings"

	"github.com/kvscout/kvscout/render/pyval"
)

// strFormat is str.format: fields by position or name, !s and !r, and format specifications of texts and numbers.
func strFormat(st *state, self pyval.Value, a arguments) (pyval.Value, error) {
	s := self.(string)
	auto := 0
	var b strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		if strings.HasPrefix(s[i+1:], s[i:i+1]) {
			b.WriteByte(s[i])
			s = s[i+2:]
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if s[i] == '}' || end < 0 {
			return nil, failf("single brace in a format string")
		}
		piece, err := formatField(s[i+1:i+end], a, &auto)
		if err != nil {
			return nil, err
		}
		if err := st.grow(b.Len() + len(piece)); err != nil {
			return nil, err
		}
		b.WriteString(piece)
		s = s[i+end+1:]
	}
	return b.String(), nil
}

// formatField formats one field, without its braces. auto counts fields without a name; -1 once numbers were seen.
func formatField(field string, a arguments, auto *int) (string, error) {
	name, format, _ := strings.Cut(field, ":")
	name, conversion, _ := strings.Cut(name, "!")
	if strings.ContainsAny(name, ".[") || strings.ContainsAny(format, "{") {
		return "", unsupportedf("attribute, item or nested field in a format string")
	}
	v, err := fieldValue(name, a, auto)
	if err != nil {
		return "", err
	}
	switch conversion {
	case "":
	case "s", "r":
		str := pyval.Str
		if conversion == "r" {
			str = pyval.Repr
		}
		if v, err = str(v); err != nil {
			return "", err
		}
	default:
		return "", unsupportedf("conversion %q in a format string", conversion)
	}
	if format == "" {
		return pyval.Str(v)
	}
	return formatValue(v, format)
}

func fieldValue(name string, a arguments, auto *int) (pyval.Value, error) {
	index := 0
	switch n, err := strconv.Atoi(name); {
	case name == "":
		if *auto < 0 {
			return nil, failf("cannot switch from manual field specification to automatic field numbering")
		}
		index = *auto
		*auto++
	case err == nil && n >= 0:
		if *auto > 0 {
			return nil, failf("cannot switch from automatic field numbering to manual field specification")
		}
		index, *auto = n, -1
	default:
		for _, k := range a.kw {
			if k.name == name {
				return k.value, nil
			}
		}
		return nil, failf("format field has no value")
	}
	if index >= len(a.pos) {
		return nil, failf("replacement index %d out of range", index)
	}
	return a.pos[index], nil
}

func formatValue(v pyval.Value, format string) (string, error) {
	sp, err := parseSpec(format)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case string:
		if sp.verb != 0 && sp.verb != 's' || sp.sign != 0 || sp.alternate || sp.grouping != 0 || sp.align == '=' || sp.zero {
			return "", unsupportedf("format of a text")
		}
		if sp.align == 0 {
			sp.align = '<'
		}
		return sp.text(v), nil
	case float64:
		if sp.verb == 0 {
			return "", unsupportedf("format of a float without a type")
		}
	case int64:
		if sp.verb == 0 {
			sp.verb = 'd'
		}
		if strings.IndexByte("dxXob", sp.verb) >= 0 {
			return sp.number().int(v)
		}
	default:
		return "", unsupportedf("format specification of %s", typeName(v))
	}
	if strings.IndexByte("feEg%", sp.verb) < 0 {
		return "", unsupportedf("format type %q", sp.verb)
	}
	return sp.number().float(v)
}

// number gives the defaults of numbers. Zeros with separators need a rule of their own.
func (sp spec) number() spec {
	if sp.align == 0 {
		sp.align = '>'
	} else if sp.zero {
		sp.zero = false
		sp.fill = "0"
	}
	return sp
}

// parseSpec reads [[fill]align][sign][#][0][width][,_][.precision][type].
func parseSpec(s string) (spec, error) {
	sp := spec{fill: " ", width: -1, precision: -1}
	if s != "" {
		_, size := pyval.DecodeRune(s)
		switch {
		case len(s) > size && strings.IndexByte("<>^=", s[size]) >= 0:
			sp.fill, sp.align = s[:size], s[size]
			s = s[size+1:]
		case strings.IndexByte("<>^=", s[0]) >= 0:
			sp.align = s[0]
			s = s[1:]
		}
	}
	take := func(set string) byte {
		if s == "" || strings.IndexByte(set, s[0]) < 0 {
			return 0
		}
		c := s[0]
		s = s[1:]
		return c
	}
	if c := take("+- "); c != '-' {
		sp.sign = c
	}
	sp.alternate = take("#") != 0
	sp.zero = take("0") != 0
	n, err := scanWidth(s, 0, &sp.width)
	if err != nil {
		return sp, err
	}
	s = s[n:]
	sp.grouping = take(",_")
	if take(".") != 0 {
		n, err := scanWidth(s, 0, &sp.precision)
		if err != nil || sp.precision < 0 {
			return sp, unsupportedf("format specification")
		}
		s = s[n:]
	}
	if s != "" {
		sp.verb, s = s[0], s[1:]
	}
	if s != "" || sp.grouping != 0 && (sp.zero || strings.IndexByte("\x00dfe%g", sp.verb) < 0) {
		return sp, unsupportedf("format specification")
	}
	return sp, nil
}
