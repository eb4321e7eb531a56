package token

import (
	"strconv"
	"strings"
)

// class reads a character class behind its opening bracket.
func (p *patternParser) class() (ranges, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.refuse("deep nesting")
	}
	defer func() { p.depth-- }()
	negated := p.take("^")
	if strings.HasPrefix(p.rest(), "]") || strings.HasPrefix(p.rest(), ":") {
		return nil, p.refuse("class that begins with ] or :")
	}
	var members ranges
	var all ranges // what stands before &&, intersected
	intersected := false
	for !p.take("]") {
		if p.pos == len(p.s) {
			return nil, p.refuse("missing ]")
		}
		if p.take("&&") {
			if intersected {
				members = all.and(members)
			}
			all, members, intersected = members, nil, true
			continue
		}
		rs, err := p.member()
		if err != nil {
			return nil, err
		}
		members = union(members, rs)
	}
	if intersected {
		members = all.and(members)
	}
	members, err := p.folded(members, negated)
	if err == nil && negated {
		members = members.not()
	}
	return members, err
}

// member reads a nested class, a range or a single member.
func (p *patternParser) member() (ranges, error) {
	if p.take("[") {
		return p.class()
	}
	first, one, err := p.memberEnd()
	if err != nil || !strings.HasPrefix(p.rest(), "-") || strings.HasPrefix(p.rest(), "-]") {
		return first, err
	}
	p.pos++
	last, alsoOne, err := p.memberEnd()
	if err != nil {
		return nil, err
	}
	if !one || !alsoOne || last[0].lo < first[0].lo {
		return nil, p.refuse("range of a class")
	}
	return ranges{{first[0].lo, last[0].lo}}, nil
}

// memberEnd reads one character or escape of a class and says whether it is a single character.
func (p *patternParser) memberEnd() (rs ranges, one bool, err error) {
	if p.take("\\") {
		return p.escape()
	}
	if p.pos == len(p.s) || p.s[p.pos] == '[' {
		return nil, false, p.refuse("range of a class")
	}
	if p.s[p.pos] == '-' && !strings.HasPrefix(p.rest(), "-]") && p.s[p.pos-1] != '[' && p.s[p.pos-1] != '^' {
		return nil, false, p.refuse("- inside of a class")
	}
	r := p.next()
	return ranges{{r, r}}, true, nil
}

// escape reads what follows a backslash and says whether it is a single character.
func (p *patternParser) escape() (rs ranges, one bool, err error) {
	if p.pos == len(p.s) {
		return nil, false, p.refuse("backslash at the end")
	}
	c := p.s[p.pos]
	p.pos++
	switch c {
	case 's', 'd', 'w':
		return tables().sets[`\`+string(rune(c))], false, nil
	case 'S', 'D', 'W':
		return tables().sets[`\`+strings.ToLower(string(rune(c)))].not(), false, nil
	case 'p', 'P':
		rs, err := p.property(c == 'P')
		return rs, false, err
	case 'x', 'u':
		r, err := p.hex(c)
		return ranges{{r, r}}, true, err
	}
	if i := strings.IndexByte("rntfvae", c); i >= 0 {
		r := rune("\r\n\t\f\v\a\x1b"[i])
		return ranges{{r, r}}, true, nil
	}
	if !asciiPunctuation(c) && c != ' ' {
		return nil, false, p.refuse("escape " + strconv.Quote(string(rune(c))))
	}
	return ranges{{rune(c), rune(c)}}, true, nil
}

func asciiPunctuation(c byte) bool {
	return '!' <= c && c <= '/' || ':' <= c && c <= '@' || '[' <= c && c <= '`' || '{' <= c && c <= '~'
}

// property reads {Name} or {^Name} behind \p.
func (p *patternParser) property(negated bool) (ranges, error) {
	name, _, ok := strings.Cut(p.rest(), "}")
	if !ok || !strings.HasPrefix(name, "{") {
		return nil, p.refuse("property")
	}
	name = name[1:]
	if strings.HasPrefix(name, "^") {
		name, negated = name[1:], !negated
		p.pos++
	}
	rs, ok := ranges(nil), name != ""
	if ok {
		rs, ok = property(name)
	}
	if !ok {
		return nil, p.refuse("property " + strconv.Quote(name))
	}
	p.pos += len(name) + 2
	if negated {
		rs = rs.not()
	}
	return rs, nil
}

// hex reads \x{HHHH}, \xHH below 80, or \uHHHH.
func (p *patternParser) hex(kind byte) (rune, error) {
	digits, limit := "", uint64(0x10FFFF)
	rest := p.rest()
	switch {
	case kind == 'x' && strings.HasPrefix(rest, "{"):
		digits, _, _ = strings.Cut(rest[1:], "}")
		p.pos += len(digits) + 2
	case kind == 'x' && len(rest) >= 2:
		digits, limit = rest[:2], 0x7F // above it is a byte, not a code point
		p.pos += 2
	case kind == 'u' && len(rest) >= 4:
		digits = rest[:4]
		p.pos += 4
	}
	v, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || v > limit || 0xD800 <= v && v <= 0xDFFF || p.pos > len(p.s) {
		return 0, p.refuse("code point")
	}
	return rune(v), nil
}

// folded adds the other cases of s where case does not count. Only ASCII letters are folded; other letters are refused.
func (p *patternParser) folded(s ranges, negated bool) (ranges, error) {
	if !p.foldCase {
		return s, nil
	}
	out := s
	ascii := s.and(ranges{{0, 0x7F}})
	for _, r := range ascii.and(ranges{{'A', 'Z'}, {'a', 'z'}}) {
		if negated {
			return nil, p.refuse("negated class of letters without case")
		}
		out = union(out, ranges{{r.lo ^ 0x20, r.hi ^ 0x20}})
	}
	for _, long := range []runeRange{{'s', 'ſ'}, {'k', '\u212A'}} { // the long s and the Kelvin sign fold to these
		if len(out.and(ranges{{long.lo, long.lo}})) > 0 {
			out = union(out, ranges{{long.hi, long.hi}})
		}
	}
	var letters []ranges
	for _, name := range []string{"L", "M", "N", "So"} { // all that has case
		rs, _ := property(name)
		letters = append(letters, rs)
	}
	if len(s.and(ranges{{0x80, 0x10FFFF}}).and(union(letters...))) > 0 {
		return nil, p.refuse("other than ascii letters without case")
	}
	return out, nil
}
