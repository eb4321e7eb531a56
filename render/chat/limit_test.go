package chat_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kvscout/kvscout/render/chat"
	"github.com/kvscout/kvscout/render/pyval"
)

// TestRule17_LimitsOfHostileTemplates runs templates that would take Python all memory or all day.
func TestRule17_LimitsOfHostileTemplates(t *testing.T) {
	limits := []chat.Option{
		chat.WithMaxSteps(200_000), chat.WithMaxBytes(8 << 20), chat.WithMaxText(1 << 20), chat.WithMaxDepth(50),
	}
	for name, src := range map[string]string{
		"repeat text":      "{{ 'a' * 1000000 * 1000000 }}",
		"repeat list":      "{{ ([1] * 1000000) * 1000000 }}",
		"double text":      "{% set ns = namespace(s='aaaa') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
		"double list":      "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"double by macro":  "{% macro m(x, n) %}{% if n > 0 %}{{ m(x ~ x, n - 1) }}{% endif %}{% endmacro %}{{ m('abcd', 40) }}",
		"nested loops":     "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}{% endfor %}{% endfor %}{% endfor %}",
		"macro recursion":  "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"loop recursion":   "{% set l = [1] %}{% for x in l recursive %}{{ loop(l) }}{% endfor %}",
		"power":            "{{ 10 ** (10 ** 10) }}",
		"power chain":      "{% set ns = namespace(n=3) %}{% for i in range(1000) %}{% set ns.n = ns.n * ns.n %}{% endfor %}",
		"replace":          "{{ ('a' * 100000)|replace('', 'b' * 100000) }}",
		"join":             "{{ ('b' * 100000).join('a' * 100000) }}",
		"center":           "{{ 'a'.center(10000000000) }}",
		"format width":     "{{ '%99999999999d' % 1 }}",
		"str.format width": "{{ '{:>9999999999}'.format(1) }}",
		"indent":           "{{ ('a\\n' * 100000)|indent(9999) }}",
		"json indent":      "{{ [[[[[[[[1]]]]]]]]|tojson(indent=99999999) }}",
		"output":           "{% for a in range(100000) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }}{% endfor %}",
		"zfill":            "{{ '1'.zfill(99999999999) }}",
		"batch fill":       "{{ [1]|batch(99999999999, 'x')|list }}",
		"range of ranges":  "{% for a in range(100000) %}{% for b in range(100000)|list %}{% endfor %}{% endfor %}",
		"lazy chain":       "{% set ns = namespace(g=[1]) %}{% for i in range(100000) %}{% set ns.g = ns.g|map('string') %}{% endfor %}{{ ns.g|list }}",
		"nested lists":     "{% set ns = namespace(g=[1]) %}{% for i in range(100000) %}{% set ns.g = [ns.g] %}{% endfor %}{{ ns.g }}",
		"nested compare":   "{% set ns = namespace(g=[1], h=[1]) %}{% for i in range(60) %}{% set ns.g = [ns.g, ns.g] %}{% set ns.h = [ns.h, ns.h] %}{% endfor %}{{ ns.g == ns.h }}",
		"nested tojson":    "{% set ns = namespace(g=[1]) %}{% for i in range(60) %}{% set ns.g = [ns.g, ns.g] %}{% endfor %}{{ ns.g|tojson }}",
		"nested text":      "{% set ns = namespace(g=[1]) %}{% for i in range(60) %}{% set ns.g = [ns.g, ns.g] %}{% endfor %}{{ ns.g }}",
		"holds itself":     "{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns }}",
	} {
		t.Run(name, func(t *testing.T) {
			tmpl, err := chat.Parse(src, limits...)
			if err == nil {
				begin := time.Now()
				_, err = tmpl.Execute(context.Background(), nil)
				if took := time.Since(begin); took > 20*time.Second {
					t.Errorf("took %v", took)
				}
			}
			if !errors.Is(err, chat.ErrLimit) && !errors.Is(err, chat.ErrTemplate) && !errors.Is(err, chat.ErrUnsupported) {
				t.Errorf("%v, want a limit", err)
			}
		})
	}
}

// TestDeepSources nests what a parser recurses over.
func TestDeepSources(t *testing.T) {
	const n = 100_000
	for name, src := range map[string]string{
		"brackets": "{{ " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) + " }}",
		"lists":    "{{ " + strings.Repeat("[", n) + strings.Repeat("]", n) + " }}",
		"nots":     "{{ " + strings.Repeat("not ", n) + "1 }}",
		"minus":    "{{ " + strings.Repeat("-", n) + "1 }}",
		"ifs":      strings.Repeat("{% if 1 %}", n) + strings.Repeat("{% endif %}", n),
		"else":     "{{ " + strings.Repeat("1 if 0 else ", n/2) + "1 }}",
		"filters":  "{{ 1" + strings.Repeat("|abs", n) + " }}",
		"attrs":    "{{ x" + strings.Repeat(".a", n) + " }}",
		"calls":    "{{ x" + strings.Repeat("()", n) + " }}",
		"sum":      "{{ 1" + strings.Repeat("+1", n) + " }}",
		"or":       "{{ 1" + strings.Repeat(" or 1", n/2) + " }}",
		"unclosed": strings.Repeat("{{ (", n),
		"targets":  "{% set " + strings.Repeat("(", n) + "a" + strings.Repeat(",)", n) + " = 1 %}",
		"macros":   strings.Repeat("{% macro a(b) %}{{ a(b) }}{% endmacro %}", 20_000),
		"sets":     strings.Repeat("{% set messages = messages %}", 20_000),
		"aliases":  strings.Repeat("{% set a = messages %}{% set b = a %}{% for m in b %}{% endfor %}", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			tmpl, err := chat.Parse(src)
			if err == nil {
				tmpl.LoopsOverContent()
				_, err = tmpl.Execute(context.Background(), nil)
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			if err != nil && !errors.Is(err, chat.ErrLimit) && !errors.Is(err, chat.ErrSyntax) && !errors.Is(err, chat.ErrTemplate) {
				t.Errorf("%v, want a limit or a syntax error", err)
			}
		})
	}
}

// TestUnsupportedIsRefusedAtLoad names what is refused, so that an operator can see it.
func TestUnsupportedIsRefusedAtLoad(t *testing.T) {
	for src, name := range map[string]string{
		"{{ x|nosuch }}": "nosuch", "{{ x|random }}": "random", "{{ x is nosuch }}": "nosuch", "{% nosuch %}": "nosuch",
		"{% include 'a' %}": "include", "{% import 'a' as b %}": "import", "{% extends 'a' %}": "extends", "{% block a %}{% endblock %}": "block",
		"{{ x.encode() }}": "encode", "{{ x.translate(y) }}": "translate", "{{ x|map('random')|list }}": "random", "{% from 'a' import b %}": "from",
		"{% if a %}{{ x|urlize }}{% endif %}": "urlize",
	} {
		_, err := chat.Parse(src)
		if !errors.Is(err, chat.ErrUnsupported) || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v, want ErrUnsupported with %q", src, err, name)
		}
	}
}

// TestErrorsHoldNoContent: what the request says stays out of error texts.
func TestErrorsHoldNoContent(t *testing.T) {
	v := chat.Vars{"secret": "s3cret", "d": pyval.NewDict("s3cret", int64(1))}
	for _, src := range []string{
		"{{ raise_exception(secret) }}", "{{ d[secret].x.y }}", "{{ secret + 1 }}", "{{ d.x[secret] }}", "{{ secret() }}", "{{ secret|round }}",
		"{{ ''|attr(secret) + 1 }}", "{{ [1]|map(secret)|list }}", "{{ strftime_now('%Q' ~ secret) }}", "{{ secret % 1 }}", "{{ '{s3}'.format(secret) }}",
		"{% macro m() %}{% endmacro %}{{ m(**d) }}", "{{ dict(**d).zz.y }}",
	} {
		tmpl, err := chat.Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = tmpl.Execute(context.Background(), v); err == nil {
			t.Errorf("%q: no error", src)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", src, err)
		}
	}
}

func TestExecuteStopsWithContext(t *testing.T) {
	tmpl, err := chat.Parse("{% for a in range(100000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := tmpl.Execute(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the context's error", err)
	}
}
