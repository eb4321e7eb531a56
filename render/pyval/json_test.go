package pyval_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/render/pyval"
)

// TestParse holds JSON against what Python 3.11's json.loads and repr made of it.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		`{"b":1,"a":2,"b":3}`: `{'b': 3, 'a': 2}`, `[1.0,1,1e2,-0,-0.0,1E400,-1e400]`: `[1.0, 1, 100.0, 0, -0.0, inf, -inf]`,
		`[NaN,Infinity,-Infinity]`: `[nan, inf, -inf]`, `123456789012345678901234567890`: `123456789012345678901234567890`,
		`[1e16,1e15,1e-5,0.0001,5e-324,1.7976931348623157e308]`: `[1e+16, 1000000000000000.0, 1e-05, 0.0001, 5e-324, 1.7976931348623157e+308]`,
		`"\ud83d\ude42 \u00e9 \/"`:                              `'🙂 é /'`, `"it's"`: `"it's"`, `"\u200b\u0000\u007f"`: `'\u200b\x00\x7f'`, `[true,false,null]`: `[True, False, None]`,
		" \t\r\n{ } ": `{}`, `"\ud800"`: `'\ud800'`, `"\ud83dx"`: `'\ud83dx'`, `"\ude42\ud83d"`: `'\ude42\ud83d'`,
	} {
		v, err := pyval.Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := pyval.Repr(v); got != want || err != nil {
			t.Errorf("%s: %s (%v), want %s", text, got, err, want)
		}
	}
}

// TestParseRefuses: what json.loads raises on.
func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", "{", "[1,]", `{"a":1,}`, `{a:1}`, "'a'", "01", "1.", ".5", "+1", "1e", "nan", "tru", `"a`, "\"a\nb\"", `"\x"`, `"\u12"`, "[1 2]", "{} x",
		`{"a" 1}`, "-", "\"\xff\"", strings.Repeat("9", 4301), "\ufeff" + "\ufeff{}",
	} {
		if v, err := pyval.Parse([]byte(text)); !errors.Is(err, pyval.ErrJSON) {
			t.Errorf("%.20q: %v, %v, want ErrJSON", text, v, err)
		}
	}
	if _, err := pyval.Parse([]byte(strings.Repeat("[", 100_000))); !errors.Is(err, pyval.ErrTooDeep) {
		t.Errorf("deep: %v, want ErrTooDeep", err)
	}
	if _, err := pyval.ParseString("\ufeff{}"); !errors.Is(err, pyval.ErrJSON) {
		t.Errorf("a text with a byte order mark: %v, want ErrJSON", err)
	}
}

// FuzzParse: no panic; what encoding/json takes, Parse takes, and what is written again reads the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.0,"\ud800",null,true,{"b":-0.0}]}`, `[NaN,1e999]`, `"\u00e9"`, "12345678901234567890123"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := pyval.Parse(text)
		if err != nil {
			if json.Valid(text) && !errors.Is(err, pyval.ErrTooDeep) && !errors.Is(err, pyval.ErrDigits) && validUTF8(text) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		written, err := pyval.Dump{}.JSON(v)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		again, err := pyval.Parse([]byte(written))
		if err != nil {
			t.Fatalf("%q, written %q: %v", text, written, err)
		}
		same, _, err := pyval.Equal(v, again)
		if !same && !strings.Contains(written, "NaN") || err != nil {
			t.Errorf("%q, written %q: not the same (%v)", text, written, err)
		}
	})
}

func validUTF8(b []byte) bool { return strings.ToValidUTF8(string(b), "?") == string(b) }

// TestNumbersCompare: Python compares integers and floats exactly.
func TestNumbersCompare(t *testing.T) {
	big, err := pyval.ParseString("9007199254740993")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b pyval.Value
		want int
	}{{big, float64(1 << 53), 1}, {int64(1), 1.0, 0}, {true, int64(1), 0}, {int64(2), math.Inf(1), -1}, {0.1, int64(0), 1}} {
		if got, ok, _, err := pyval.Compare(c.a, c.b); got != c.want || !ok || err != nil {
			t.Errorf("compare %v %v: %d %v %v, want %d", c.a, c.b, got, ok, err, c.want)
		}
	}
}
