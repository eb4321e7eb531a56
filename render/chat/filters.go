package chat

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/kvscout/kvscout/render/pyval"
)

// filterFunc is a filter: the value before the "|", and the arguments in brackets.
type filterFunc func(st *state, v pyval.Value, a arguments) (pyval.Value, error)

// filters are those of jinja2/filters.py that we do exactly, with tojson as transformers has it.
var filters map[string]filterFunc

// otherFilters are those that Jinja has and we do not. A template that names one is refused at load.
var otherFilters = words(`filesizeformat forceescape groupby pprint random slice striptags urlencode urlize wordwrap
	xmlattr`)

func init() {
	filters = map[string]filterFunc{
		"tojson": filterTojson, "default": filterDefault, "d": filterDefault,
		"length": filterLength, "count": filterLength, "string": filterString, "safe": filterSafe,
		"escape": filterEscape, "e": filterEscape, "abs": filterAbs, "int": filterInt, "float": filterFloat, "round": filterRound,
		"upper": onText(pyval.Upper), "lower": onText(pyval.Lower), "capitalize": onText(pyval.Capitalize),
		"title": onText(jinjaTitle), "trim": filterTrim, "replace": filterReplace, "indent": filterIndent,
		"center": filterCenter, "truncate": filterTruncate, "wordcount": filterWordcount, "format": filterFormat,
		"join": filterJoin, "first": filterFirst, "last": filterLast, "list": filterList, "reverse": filterReverse,
		"sort": filterSort, "unique": filterUnique, "dictsort": filterDictsort, "min": extreme(-1), "max": extreme(1),
		"sum": filterSum, "map": filterMap, "select": selector(true, false), "reject": selector(false, false),
		"selectattr": selector(true, true), "rejectattr": selector(false, true), "items": filterItems, "attr": filterAttr,
		"batch": filterBatch,
	}
}

// softText is soft_str: the text of a value, which stays marked up if it is.
func (st *state) softText(v pyval.Value) (string, error) {
	if _, ok := v.(markup); ok {
		return "", unsupportedf("filter of marked up text")
	}
	return st.str(v)
}

func onText(f func(string) string) filterFunc {
	return func(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
		s, err := st.softText(v)
		if err == nil {
			err = st.grow(3 * len(s))
		}
		if err != nil {
			return nil, err
		}
		return f(s), a.none("filter")
	}
}

// jinjaTitle is Jinja's title, which differs from Python's in where words begin.
func jinjaTitle(s string) string {
	var b strings.Builder
	for s != "" {
		word := strings.IndexFunc(s, wordBreak)
		if word < 0 {
			word = len(s)
		}
		if word > 0 {
			_, first := pyval.DecodeRune(s)
			b.WriteString(pyval.Upper(s[:first]))
			b.WriteString(pyval.Lower(s[first:word]))
		}
		s = s[word:]
		rest := strings.TrimLeftFunc(s, wordBreak)
		b.WriteString(s[:len(s)-len(rest)])
		s = rest
	}
	return b.String()
}

func wordBreak(r rune) bool { return pyval.IsSpace(r) || strings.ContainsRune("-({[<", r) }

func filterTojson(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.bind("tojson", "ensure_ascii", "indent", "separators", "sort_keys")
	if err != nil {
		return nil, err
	}
	o := pyval.Dump{Max: st.text}
	o.EnsureASCII = p[0] != nil && pyval.Truth(p[0])
	o.SortKeys = p[3] != nil && pyval.Truth(p[3])
	switch indent := p[1].(type) {
	case nil, pyval.None:
	case string:
		o.Indent = &indent
	default:
		n, err := integer(p[1], "indent", 0)
		if err != nil {
			return nil, err
		}
		if n > 100 {
			return nil, limitf("indent of more than 100")
		}
		s := strings.Repeat(" ", max(n, 0))
		o.Indent = &s
	}
	if _, none := p[2].(pyval.None); p[2] != nil && !none {
		pair, err := st.items(p[2])
		if err != nil {
			return nil, err
		}
		if len(pair) != 2 {
			return nil, failf("separators must be a pair")
		}
		item, ok1 := pair[0].(string)
		key, ok2 := pair[1].(string)
		if !ok1 || !ok2 {
			return nil, failf("separators must be texts")
		}
		o.Separators, o.ItemSeparator, o.KeySeparator = true, item, key
	}
	s, err := o.JSON(v)
	if err != nil {
		return nil, err
	}
	return s, st.grow(len(s))
}

func filterDefault(_ *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.bind("default", "default_value", "boolean")
	if err != nil {
		return nil, err
	}
	if isUndefined(v) || p[1] != nil && pyval.Truth(p[1]) && !pyval.Truth(v) {
		if p[0] == nil {
			return "", nil
		}
		return p[0], nil
	}
	return v, nil
}

func filterLength(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	n, err := st.length(v)
	if err != nil {
		return nil, err
	}
	return int64(n), a.none("length")
}

func filterString(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	if _, ok := v.(markup); ok {
		return v, nil
	}
	s, err := st.str(v)
	if err != nil {
		return nil, err
	}
	return s, a.none("string")
}

func filterSafe(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	s, err := st.str(v)
	if err != nil {
		return nil, err
	}
	return markup{s}, a.none("safe")
}

func escapeHTML(s string) string {
	return strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;").Replace(s)
}

func filterEscape(st *state, v pyval.Value, a arguments) (pyval.Value, error) {
	if _, ok := v.(markup); ok {
		return v, nil
	}
	s, err := st.str(v)
	if err == nil {
		err = st.grow(5 * len(s))
	}
	if err != nil {
		return nil, err
	}
	return markup{escapeHTML(s)}, a.none("escape")
}

func filterAbs(_ *state, v pyval.Value, _ arguments) (pyval.Value, error) {
	if f, ok := v.(float64); ok {
		return math.Abs(f), nil
	}
	b := pyval.BigInt(v)
	if b == nil {
		return nil, failf("bad operand type for abs(): %s", pyval.TypeName(v))
	}
	return pyval.Int(new(big.Int).Abs(b)), nil
}

// truncate is int(f) of a finite float.
func truncate(f float64) pyval.Value {
	b, _ := new(big.Float).SetFloat64(f).Int(nil)
	return pyval.Int(b)
}

func filterInt(_ *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.bind("int", "default", "base")
	if err != nil {
		return nil, err
	}
	var def pyval.Value = int64(0)
	if p[0] != nil {
		def = p[0]
	}
	base, err := integer(p[1], "base", 10)
	if err != nil {
		return nil, err
	}
	switch x := v.(type) {
	case *undefined:
		return nil, x.fail()
	case string:
		if foreignDigits(x) {
			return nil, unsupportedf("number in digits other than ASCII")
		}
		if n, ok := parseInt(x, base); ok {
			return n, nil
		}
		f, ok := parseFloat(x)
		if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
			return def, nil
		}
		return truncate(f), nil
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			// int(inf) is an OverflowError, which the filter catches only behind the second try.
			if math.IsInf(x, 0) {
				return nil, failf("cannot convert float infinity to integer")
			}
			return def, nil
		}
		return truncate(x), nil
	}
	if b := pyval.BigInt(v); b != nil {
		return pyval.Int(b), nil
	}
	return def, nil
}

func foreignDigits(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 && isDecimalRune(r) }) >= 0
}

// parseInt is int(s, base) for ASCII digits; ok is false where Python raises ValueError.
func parseInt(s string, base int) (pyval.Value, bool) {
	s = strings.TrimFunc(s, pyval.IsSpace)
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || digits == "" || len(digits) > 4300 || base < 2 || base > 36 {
		return nil, false
	}
	prefix := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]
	if prefix != "" && strings.HasPrefix(strings.ToLower(digits), prefix) {
		digits = strings.TrimPrefix(digits[2:], "_")
	}
	if strings.HasPrefix(digits, "_") || strings.HasSuffix(digits, "_") || strings.Contains(digits, "__") {
		return nil, false
	}
	b, ok := new(big.Int).SetString(strings.ReplaceAll(digits, "_", ""), base)
	if !ok || digits[0] == '-' || digits[0] == '+' {
		return nil, false
	}
	if strings.HasPrefix(s, "-") {
		b.Neg(b)
	}
	return pyval.Int(b), true
}

// parseFloat is float(s); ok is false where Python raises ValueError.
func parseFloat(s string) (float64, bool) {
	s = strings.TrimFunc(s, pyval.IsSpace)
	word := strings.ToLower(strings.TrimLeft(s, "+-"))
	switch {
	case word == "nan" || word == "inf" || word == "infinity":
	case s == "" || strings.ContainsAny(word, "xpn") || strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_"):
		return 0, false
	}
	for i := range len(s) {
		if s[i] == '_' && (i == 0 || i+1 == len(s) || !isDigit(s[i-1]) || !isDigit(s[i+1])) {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func filterFloat(_ *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.bind("float", "default")
	if err != nil {
		return nil, err
	}
	var def pyval.Value = 0.0
	if p[0] != nil {
		def = p[0]
	}
	switch x := v.(type) {
	case *undefined:
		return nil, x.fail()
	case string:
		if foreignDigits(x) {
			return nil, unsupportedf("number in digits other than ASCII")
		}
		if f, ok := parseFloat(x); ok {
			return f, nil
		}
		return def, nil
	case *big.Int:
		f, ok := asFloat(x)
		if !ok {
			return nil, failf("int too large to convert to float")
		}
		return f, nil
	}
	if f, ok := asFloat(v); ok {
		return f, nil
	}
	return def, nil
}

func filterRound(_ *state, v pyval.Value, a arguments) (pyval.Value, error) {
	p, err := a.bind("round", "precision", "method")
	if err != nil {
		return nil, err
	}
	precision, err := integer(p[0], "precision", 0)
	if err != nil {
		return nil, err
	}
	method, err := text(p[1], "method", "common")
	if err != nil {
		return nil, err
	}
	if u, ok := v.(*undefined); ok {
		return nil, u.fail()
	}
	switch {
	case method != "common" && method != "ceil" && method != "floor":
		return nil, failf("method must be common, ceil or floor")
	case precision < 0 || precision > 300:
		return nil, unsupportedf("rounding to a precision of %d", precision)
	}
	if b := pyval.BigInt(v); b != nil && method == "common" {
		return pyval.Int(b), nil
	}
	f, ok := asFloat(v)
	if !ok {
		return nil, failf("type %s cannot be rounded", pyval.TypeName(v))
	}
	switch method {
	case "ceil":
		f = math.Ceil(f*math.Pow10(precision)) / math.Pow10(precision)
	case "floor":
		f = math.Floor(f*math.Pow10(precision)) / math.Pow10(precision)
	default:
		// The shortest decimal rounding to even at a tie of the exact value: what strconv does.
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', precision, 64), 64)
	}
	return f, nil
}
