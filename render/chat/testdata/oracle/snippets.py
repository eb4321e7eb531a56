"""Writes snippets.json.zst: small templates, rendered by the environment of transformers (see make.py).

    python snippets.py

{"vars": {...}, "snippets": [{"src", "out"} or {"src", "err"}]}
"""
import os, sys
from make import hf, render, write

VARS = {
    "s": "Hello, World", "u": "naïve — 日本 👩‍👩‍👧 ß", "empty": "", "n": 3, "f": 1.5, "neg": -7, "big": 10**30, "t": True,
    "no": False, "none_": None, "l": [3, 1, 2], "mixed": [1, "a", 2.0, None, True, {"k": "v"}], "d": {"b": 1, "a": [1, 2], "items": "x"},
    "nested": {"a": {"b": {"c": 5}}, "list": [{"name": "x", "v": 1}, {"name": "Y", "v": 2}, {"name": "a"}]},
    "names": ["bob", "Alice", "carol", "alice"], "q": "it's", "dq": 'say "x"', "both": "'\"", "ctl": "a\tb\nc\x00\x7f\u200b\u2028",
    "html": "<a href='x'>&amp;</a>", "lines": "one\ntwo\r\nthree\n\nfour", "ws": " \t x y \n", "nums": [1.0, 1e16, 1e15, 1e-5, 0.0001, 123456789.123, 1e22, 5e-324, -0.0],
}

RAW = r"""
{{ x }}|a
a
a{# c #}b
{% if t %}
x
{% endif %}
y
  {% if t %}  a  {% endif %}  
  {%+ if t %}a{% endif %}
{% if t -%}   a   {%- endif %}  b
{% if t +%}
a{% endif +%}
b
 {{ 1 }} 
 {{- 1 -}} 
a {#- c -#} b
  {# c #}
x
{% raw %} {{ x }} {% endraw %}
{%- raw -%}  {% if %}  {%- endraw -%} x
a  {% raw %}
b{% endraw %}
c
{{ '{{' }}{{ "}}" }}{{ {'a': {'b': 1}} }}
{% for x in l %}{{ x }}{% endfor %}
{% for x in l -%}
  {{ x }}
{%- endfor %}
{% for x in l %}
  {{ x }}
{% endfor %}
{% set x = 1 %}{% set x = x + 1 %}{{ x }}
{% set x %} abc {% endset %}[{{ x }}]
{% set x | upper %}abc{% endset %}{{ x }}
{% set x | upper | replace('B', 'z') | trim %} abc {% endset %}[{{ x }}]
{% set a, b = 1, 2 %}{{ a }}{{ b }}
{% set (a, (b, c)) = (1, (2, 3)) %}{{ a }}{{ b }}{{ c }}
{% set a, b = l %}{{ a }}
{% set ns = namespace(x=1, y=[]) %}{% set ns.x = 5 %}{{ ns.x }}{{ ns.y }}{{ ns['x'] }}{{ ns.zz }}|{{ ns }}
{% set ns = namespace(d) %}{{ ns.b }}|{{ ns.items }}
{% set ns = namespace() %}{% for x in l %}{% set ns.last = x %}{% endfor %}{{ ns.last }}
{% set d.x = 1 %}
{% for x in l %}{% set y = x %}{% endfor %}{{ y }}|
{% set y = 0 %}{% for x in l %}{% set y = y + x %}{{ y }},{% endfor %}{{ y }}
{% if t %}{% set z = 1 %}{% endif %}{{ z }}
{% for x in l %}{% if x == 1 %}{% set n = 9 %}{% endif %}{{ n }},{% endfor %}{{ n }}
{% for x in l %}{{ n }}{% set n = x %}{{ n }},{% endfor %}{{ n }}
{% macro m() %}{{ n }}{% endmacro %}{{ m() }}{% set n = 4 %}{{ m() }}
{% macro m() %}{{ late }}{% endmacro %}{{ m() }}|{% set late = 4 %}{{ m() }}
{% macro m(a, b=2, c=a) %}{{ a }}-{{ b }}-{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c=5) }}{{ m(b=1, a=0) }}{{ m() }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}
{% macro m(a) %}{{ a }}{{ kwargs }}{{ varargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}
{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}in {{ n }}{% endcall %}
{% macro m() %}[{{ caller(1, 2) }}]{% endmacro %}{% call(a, b) m() %}{{ a }}{{ b }}{% endcall %}
{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}
{% macro m() %}{{ caller }}{% endmacro %}[{{ m() }}]
{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(5) }}
{% macro m(x) %}a{% endmacro %}{{ m }}|{{ m.name }}|{{ m.arguments }}|{{ m is callable }}
{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}
{% set ns = namespace() %}{% for x in l %}{% if loop.first %}{% macro m() %}{{ x }}{% endmacro %}{% set ns.m = m %}{% endif %}{{ ns.m() }}{% endfor %}
{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}
{% with %}{% set q2 = 1 %}{{ q2 }}{% endwith %}{{ q2 }}
{% with n = n + 1 %}{{ n }}{% endwith %}{{ n }}
{% filter upper %}abc {{ n }}{% endfilter %}
{% filter indent(2) | upper %}a
b{% endfilter %}
{% generation %}{{ n }}{% set g = 1 %}{% endgeneration %}{{ g }}|
{% for x in l %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}
{% print 1, 'a' %}
{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a','b') }}{{ loop.changed(x) }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}
{% for x in l %}{{ loop }}{% endfor %}
{% for x in l %}{{ loop.zzz }}|{{ loop.zzz.y }}{% endfor %}
{% for x in [] %}a{% else %}b{% endfor %}
{% for x in none_ %}a{% endfor %}
{% for x in missing %}a{% else %}none{% endfor %}
{% for x in l if x > 1 %}{{ x }}{{ loop.length }}{% endfor %}
{% for x in l if loop.first %}{{ x }}{% endfor %}
{% for a, b in d.items() %}{{ a }}={{ b }};{% endfor %}
{% for a, b in d|items %}{{ a }}={{ b }};{% endfor %}
{% for k in d %}{{ k }}{% endfor %}
{% for c in 'aé日' %}{{ c }}.{% endfor %}
{% for x in n %}{% endfor %}
{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}
{% for x in [1,[2,[3]]] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{{ loop.depth }}{% endif %}{% endfor %}
{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}
{% for x in l %}{% set outer = loop %}{% for y in l %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}
{% for i in range(3) %}{{ i }}{% endfor %}{{ range(3) }}{{ range(1, 10, 3)|list }}{{ range(5, 0, -2)|list }}{{ range(0)|list }}
{{ range(100001) }}
{{ range(100000)|length }}
{% if n == 3 %}a{% elif n == 4 %}b{% else %}c{% endif %}
{% if no %}a{% elif n == 3 %}b{% else %}c{% endif %}
{% if missing %}a{% else %}b{% endif %}
{% if missing.x %}a{% endif %}
{{ 1 if no }}|{{ 1 if no else 2 }}|{{ (1 if no) is defined }}
{{ 'a' 'b' "c" }}
{{ "\n\t\\\x41\u00e9\U0001F600\101\q'" }}
{{ 'it\'s' }}
{{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1e3 }} {{ 1.5e-7 }} {{ 1_0.5 }}
{{ true }}{{ True }}{{ none }}{{ None }}{{ false }}
{{ none_ }} {{ t }} {{ f }} {{ big }} {{ l }} {{ d }} {{ mixed }} {{ (1,) }} {{ () }} {{ (1, 2) }} {{ {} }} {{ [] }}
{{ [s, q, dq, both, ctl, u] }}
{{ nums }}
{{ nums|tojson }}
{{ 5/2 }} {{ 4/2 }} {{ 7//2 }} {{ -7//2 }} {{ -7%3 }} {{ 7%-3 }} {{ 7//-2 }} {{ 2**3 }} {{ 2**-1 }} {{ 7.5//2 }} {{ -7.5%2 }} {{ 7.5%-2 }} {{ 2**0.5 }} {{ 10**20 }} {{ -2**2 }} {{ 2**3**2 }}
{{ 1/0 }}
{{ 1%0 }}
{{ 1.0//0 }}
{{ big * big }} {{ big // 7 }} {{ big % 7 }} {{ -big // 7 }} {{ -big % 7 }} {{ big / 3 }} {{ big + 0.5 }} {{ big == 1e30 }} {{ big > 1e29 }}
{{ 9223372036854775807 + 1 }} {{ -9223372036854775808 - 1 }} {{ 4611686018427387904 * 2 }}
{{ 0.1 + 0.2 }} {{ 1 + 1.0 }} {{ t + t }} {{ t * 3 }} {{ +t }} {{ -f }} {{ - n }}
{{ 'a' * 3 }} {{ 3 * 'a' }} {{ [1] * 2 }} {{ (1,) * 2 }} {{ 'a' * -1 }} {{ [1] + [2] }} {{ (1,) + (2,) }}
{{ 'a' + 1 }}
{{ 'a' + none_ }}
{{ none_ + 'a' }}
{{ 'a' + missing }}
{{ missing + 'a' }}
{{ [1] + 'a' }}
{{ 'a' ~ 1 ~ none_ ~ t ~ missing ~ 1.0 ~ [1] }}
{{ 1 ~ 2 + 3 }} {{ 1 + 2 ~ 3 }} {{ 'a' ~ 2 * 3 }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 > 1 == 1 }} {{ 1 == 1.0 }} {{ 1 == true }} {{ '1' == 1 }} {{ none_ == none }} {{ l == [3,1,2] }} {{ d == {'a': [1,2], 'b': 1, 'items': 'x'} }} {{ (1,2) == [1,2] }} {{ [1,2] < [1,3] }} {{ 'a' < 'b' }} {{ 'Z' < 'a' }}
{{ 'a' < 1 }}
{{ none_ < 1 }}
{{ missing > 1 }}
{{ missing == none }} {{ missing == missing2 }} {{ missing != 1 }} {{ missing is none }}
{{ 1 in l }} {{ 5 not in l }} {{ 'a' in 'abc' }} {{ 'b' in d }} {{ 1 in missing }} {{ '' in 'abc' }} {{ 1.0 in l }} {{ true in l }} {{ 'k' in mixed }} {{ {'k':'v'} in mixed }}
{{ 1 in 'abc' }}
{{ none_ in 'abc' }}
{{ 1 in n }}
{{ [1] in d }}
{{ not t }} {{ not no and t }} {{ t or x.y.z }} {{ no and x.y.z }} {{ 1 and 2 }} {{ 0 or 'x' }} {{ '' or missing or [] }} {{ not missing }}
{{ not 1 == 2 }} {{ not (1 in l) }} {{ (not 1) in l }} {{ 1 is defined and 2 }} {{ not x is defined }}
{{ x.y }}
{{ d.zzz }}|{{ d['zzz'] }}|{{ d.zzz is defined }}
{{ d.zzz.y }}
{{ d.items }}|
{{ d['items'] }} {{ d.b }} {{ d['b'] }} {{ d.a[0] }} {{ d.a.0 }} {{ d.a[-1] }} {{ d.a[9] }}| {{ nested.a.b.c }} {{ nested['a']['b']['c'] }}
{{ l[0] }} {{ l[-1] }} {{ l[10] }}| {{ l['x'] }}| {{ l.x }}| {{ s[0] }} {{ s[-1] }} {{ u[3] }} {{ u[-1] }} {{ s['x'] }}| {{ n.x }}| {{ n[0] }}| {{ none_.x }}| {{ none_['x'] }}|
{{ l[true] }} {{ l[1.0] }}| {{ l[none_] }}| {{ d[[1]] }}| {{ d[1] }}| {{ {1: 'a'}[1] }} {{ {1: 'a'}[1.0] }} {{ {1: 'a'}[true] }} {{ {none: 2}[none] }}
{{ l[1:] }} {{ l[:1] }} {{ l[::-1] }} {{ l[-2:] }} {{ l[5:] }} {{ l[::2] }} {{ s[1:4] }} {{ s[::-1] }} {{ u[3:8] }} {{ u[::-1] }} {{ s[:-1] }} {{ (1,2,3)[1:] }} {{ l[0:none] }} {{ l[-1:0:-1] }} {{ l[:] }}
{{ missing[1:] }}
{{ d[1:] }}|{{ n[1:] }}|{{ l['a':] }}|
{{ l[::0] }}
{{ s.upper() }} {{ s.lower() }} {{ s.title() }} {{ s.capitalize() }} {{ s.swapcase() }} {{ u.upper() }} {{ u.title() }} {{ 'ΑΣ ΑΣΑ'.lower() }} {{ 'ǆ'.title() }} {{ 'ﬁx'.upper() }} {{ 'ﬁx'.capitalize() }} {{ "they're bill's".title() }}
{{ s.split(',') }} {{ s.split() }} {{ ws.split() }} {{ 'a,b,,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a b  c'.split(none, 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a,b,c'.rsplit(',', 1) }} {{ 'a b  c '.rsplit(none, 1) }} {{ 'abc'.split('') }}
{{ 'a,b'.split(sep=',') }} {{ 'a,b,c'.split(',', maxsplit=1) }}
{{ ws.strip() }}|{{ ws.lstrip() }}|{{ ws.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'abcba'.strip('ab') }}|{{ '\u00a0\u2003\u3000\u0085\x1ca\ufeff\u200b'.strip() }}|{{ 'éaé'.strip('é') }}|{{ 'a'.strip(none) }}
{{ s.startswith('He') }} {{ s.endswith('ld') }} {{ s.startswith(('x', 'H')) }} {{ s.startswith('') }} {{ s.endswith(('a',)) }}
{{ s.startswith(1) }}
{{ s.startswith(missing) }}
{{ s.replace('l', 'L') }} {{ s.replace('l', 'L', 1) }} {{ 'abc'.replace('', '-') }} {{ 'aaa'.replace('a', 'b', 2) }} {{ 'é'.replace('', 'x') }}
{{ s.find('o') }} {{ s.find('z') }} {{ s.rfind('o') }} {{ u.find('日') }} {{ s.index('W') }} {{ s.count('l') }} {{ s.count('') }} {{ s.find('o', 5) }} {{ s.find('o', 5, 6) }} {{ s.find('', 50) }} {{ s.find('H', -100) }} {{ s.count('l', 4) }}
{{ s.index('zz') }}
{{ s.partition(', ') }} {{ s.partition('zz') }} {{ s.rpartition('o') }} {{ s.rpartition('zz') }} {{ lines.splitlines() }} {{ lines.splitlines(true) }} {{ 'a\x0bb\x0cc\x1cd\x85e\u2028f'.splitlines() }}
{{ 'a'.removeprefix('a') }}|{{ 'abc'.removeprefix('b') }}|{{ 'abc'.removesuffix('c') }} {{ '42'.zfill(5) }} {{ '-42'.zfill(5) }} {{ '+4'.zfill(3) }} {{ 'x'.center(5, '*') }} {{ 'ab'.center(5, '*') }} {{ 'x'.center(4) }}| {{ 'x'.ljust(3) }}| {{ 'x'.rjust(3, '0') }}
{{ ', '.join(names) }} {{ ','.join('abc') }} {{ ''.join([]) }} {{ ','.join({'a': 1, 'b': 2}) }}
{{ ','.join(l) }}
{{ '12'.isdigit() }} {{ '²'.isdigit() }} {{ '½'.isdigit() }} {{ '½'.isnumeric() }} {{ 'a1'.isalnum() }} {{ 'aé'.isalpha() }} {{ ''.isalpha() }} {{ ' '.isspace() }} {{ 'A'.isupper() }} {{ 'a1'.islower() }} {{ '1'.islower() }} {{ '٣'.isdecimal() }} {{ 'ab'.isascii() }} {{ 'é'.isascii() }} {{ 'a\n'.isprintable() }} {{ '一'.isnumeric() }}
{{ '%s-%d-%5.2f-%r-%%-%x-%5s|%-5s|%05d|%+d' % ('a', 3, 1.5, 'q', 255, 'r', 'l', 42, 7) }} {{ '%s' % 1 }} {{ '%s' % [1] }} {{ '%s %s' % (1, none_) }} {{ '%(a)s' % {'a': 1} }} {{ '%.3s' % 'abcdef' }} {{ '%e' % 12345.678 }} {{ '%g' % 0.00001 }} {{ '%g' % 123456789 }} {{ '%d' % 3.9 }} {{ '%i' % true }} {{ '%s' % missing }}|
{{ '%s' % (1, 2) }}
{{ '%s %s' % 1 }}
{{ '%d' % 'a' }}
{{ 'a' % 1 }}
{{ 'a' % {} }} {{ 'a' % [] }}
{{ '{} {}'.format(1, 'a') }} {{ '{0}{1}{0}'.format('a', 'b') }} {{ '{x}'.format(x=5) }} {{ '{:5}|{:<5}|{:>5}|{:^5}'.format('a', 'b', 'c', 'd') }} {{ '{:05d} {:+} {:,}'.format(42, 7, 1234567) }} {{ '{:.2f} {:8.3f} {:e}'.format(1.234, 5.6, 12345.0) }} {{ '{{}}'.format() }} {{ '{!r}'.format('a') }} {{ '{:*^7}'.format('x') }} {{ '{:x} {:X} {:b} {:o} {:#x}'.format(255, 255, 5, 8, 255) }} {{ '{:.1%}'.format(0.256) }} {{ '{}'.format(none_) }}
{{ '{} {}'.format(1) }}
{{ '{x}'.format(y=1) }}
{{ d.get('b') }} {{ d.get('zz') }} {{ d.get('zz', 5) }} {{ d.keys()|list }} {{ d.values()|list }} {{ d.items()|list }} {{ d.keys() }} {{ d.items() }} {{ d.copy() == d }} {{ d.get([1]) }}
{{ d.items()|length }} {{ d.keys()|length }}
{{ d.update({'x': 1}) }}
{{ l.append(1) }}
{{ l.append }}|{{ l.append is defined }}
{{ d.pop('a') }}
{{ l.index(1) }} {{ l.count(1) }} {{ (1,2,1).count(1) }}
{{ l.index(99) }}
{{ s.nope() }}
{{ n() }}
{{ missing() }}
{{ none_.x() }}
{{ s|upper }} {{ n|upper }} {{ none_|upper }} {{ s|lower }} {{ s|title }} {{ "they're (big)-house [x]"|title }} {{ 'hELLO wORLD'|capitalize }} {{ missing|upper }}|
{{ ws|trim }}|{{ 'xax'|trim('x') }}|{{ n|trim }}|{{ missing|trim }}|
{{ s|length }} {{ u|length }} {{ l|count }} {{ d|length }} {{ missing|length }} {{ range(4)|length }}
{{ n|length }}
{{ none_|length }}
{{ l|map('string')|length }}
{{ missing|default('x') }} {{ none_|default('x') }} {{ none_|default('x', true) }} {{ ''|d('y', true) }} {{ d.zzz|default([]) }} {{ missing|default }}| {{ no|default(1, boolean=true) }}
{{ missing.x|default('a') }}
{{ l|join }} {{ l|join(', ') }} {{ mixed|join('|') }} {{ nested.list|join(',', attribute='name') }} {{ missing|join }}| {{ 'abc'|join('-') }} {{ d|join(',') }}
{{ none_|join }}
{{ l|first }} {{ l|last }} {{ []|first }}| {{ []|last }}| {{ 'abc'|first }} {{ 'abé'|last }} {{ d|first }} {{ d|last }} {{ missing|first }}| {{ missing|last }}|
{{ l|list }} {{ 'abc'|list }} {{ d|list }} {{ missing|list }} {{ (1,2)|list }}
{{ none_|list }}
{{ l|reverse|list }} {{ 'abé'|reverse }} {{ d|reverse|list }} {{ l|map('string')|reverse }}
{{ l|sort }} {{ l|sort(reverse=true) }} {{ names|sort }} {{ names|sort(case_sensitive=true) }} {{ nested.list|sort(attribute='name')|map(attribute='name')|list }} {{ d|sort }} {{ names|sort(true) }}
{{ mixed|sort }}
{{ names|unique|list }} {{ [1, 1.0, true, 2]|unique|list }} {{ names|unique(true)|list }} {{ nested.list|unique(attribute='v')|list|length }}
{{ d|dictsort }} {{ d|dictsort(reverse=true) }} {{ {'B': 1, 'a': 0}|dictsort }} {{ {'B': 1, 'a': 0}|dictsort(true) }} {{ {'b': 2, 'a': 3}|dictsort(by='value') }} {{ {'b': 2, 'a': 3}|dictsort(false, 'value', true) }}
{{ l|min }} {{ l|max }} {{ names|min }} {{ names|max }} {{ []|min }}| {{ nested.list|max(attribute='name') }} {{ names|max(true) }}
{{ l|sum }} {{ [1.5, 2]|sum }} {{ nested.list[:2]|sum(attribute='v') }} {{ l|sum(start=10) }} {{ []|sum }} {{ [[1],[2]]|sum(start=[]) }}
{{ ['a']|sum }}
{{ nested.list|sum(attribute='v') }}
{{ l|map('string')|list }} {{ names|map('upper')|join(',') }} {{ nested.list|map(attribute='v')|list|length }} {{ nested.list|map(attribute='v', default=0)|list }} {{ [[1,2],[3,4]]|map(attribute=1)|list }} {{ [[1,2],[3,4]]|map(attribute='0')|list }} {{ [nested]|map(attribute='a.b.c')|list }} {{ none_|map('upper')|list }} {{ l|map('int', base=10)|list }} {{ ['a b']|map('replace', ' ', '-')|list }} {{ l|map('nosuch')|first if no }}
{{ l|map('nosuch')|list }}
{{ l|map()|list }}
{{ nested.list|map(attribute='a.b')|list }}
{{ l|select('odd')|list }} {{ l|reject('odd')|list }} {{ mixed|select|list }} {{ l|select('>', 1)|list }} {{ l|select('in', [1, 2])|list }} {{ nested.list|selectattr('v')|map(attribute='name')|list }} {{ nested.list|selectattr('v', 'defined')|list|length }} {{ nested.list|rejectattr('v', 'defined')|list }} {{ nested.list|selectattr('name', 'equalto', 'x')|first }} {{ nested.list|selectattr('v', '==', 2)|list }} {{ none_|select|list }} {{ missing|select|list }} {{ nested.list|selectattr('name', 'string')|list|length }}
{{ l|select('nosuch')|list }}
{{ [1]|selectattr('x', '>', 1)|list }}
{{ d|items|list }} {{ missing|items|list }}
{{ l|items|list }}
{{ d|attr('b') }}| {{ d|attr('get') is callable }} {{ s|attr('upper') is callable }}
{{ '42'|int }} {{ ' 42 '|int }} {{ '4.7'|int }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ 4.9|int }} {{ -4.9|int }} {{ none_|int }} {{ '0x1F'|int(base=16) }} {{ '1f'|int(0, 16) }} {{ true|int }} {{ '1_000'|int }} {{ '1e3'|int }} {{ ''|int }} {{ l|int }} {{ '-5'|int }} {{ '+5'|int }} {{ '--5'|int }} {{ 1e20|int }} {{ '٣'|int }}
{{ missing|int }}
{{ '4.5'|float }} {{ 'x'|float }} {{ 'x'|float(1.5) }} {{ 3|float }} {{ 'inf'|float }} {{ 'nan'|float }} {{ '1e5'|float }} {{ none_|float }} {{ '1_0.5'|float }} {{ ' 2 '|float }} {{ '-inf'|float }} {{ '0x10'|float }}
{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 42.55|round(1) }} {{ 42.55|round(1, 'floor') }} {{ 42.55|round(1, 'ceil') }} {{ 5|round }} {{ -2.5|round }} {{ 1.005|round(2) }} {{ 2|round(1, 'floor') }} {{ 0.5|round }}
{{ 'x'|round }}
{{ neg|abs }} {{ -1.5|abs }} {{ (-1.5)|abs }} {{ true|abs }}
{{ 'x'|abs }}
{{ s|replace('l', 'L') }} {{ 123|replace(2, 'x') }} {{ s|replace('l', 'L', 1) }} {{ missing|replace('a', 'b') }}| {{ 'aaa'|replace('a', 'b', count=2) }}
{{ lines|indent }}|{{ lines|indent(2, true) }}|{{ lines|indent('> ', blank=true) }}|{{ ''|indent }}|{{ 'a\n'|indent(2) }}|{{ lines|indent(width=1, first=true) }}
{{ n|indent }}
{{ s|string }} {{ n|string + 'x' }} {{ none_|string }} {{ l|string }} {{ t|string|lower }} {{ missing|string }}|
{{ s|center(20) }}| {{ s|truncate(5) }} {{ s|truncate(8, true) }} {{ 'foo bar baz qux'|truncate(9) }} {{ 'foo bar baz qux'|truncate(9, true) }} {{ 'foo bar baz qux'|truncate(11) }} {{ 'foo bar baz qux'|truncate(11, false, '...', 0) }} {{ s|wordcount }} {{ u|wordcount }} {{ 'foo bar'|truncate(5, end='') }}
{{ '%s-%s'|format(1, 'a') }} {{ '%(a)s'|format(a=1) }}
{{ [1,2,3,4,5]|batch(2)|list }} {{ [1,2,3]|batch(2, 'x')|list }}
{{ html|e }} {{ html|escape|length }} {{ (html|safe) + '<b>' }} {{ '<b>' + (html|safe) }} {{ html|safe ~ '<b>' }} {{ html|safe|e }} {{ '<'|e == '&lt;' }} {{ 5|e }} {{ none_|e }} {{ html|e is string }} {{ (html|e)|string }}
{{ d|tojson }} {{ mixed|tojson }} {{ u|tojson }} {{ u|tojson(ensure_ascii=true) }} {{ ctl|tojson }} {{ ctl|tojson(ensure_ascii=true) }} {{ html|tojson }} {{ d|tojson(indent=2) }} {{ []|tojson(indent=2) }} {{ {}|tojson(indent=2) }} {{ d|tojson(indent='--') }} {{ d|tojson(separators=(',', ':')) }} {{ d|tojson(sort_keys=true) }} {{ {'b': 1, 'a': [1, {'c': none}]}|tojson(indent=0) }} {{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }} {{ (1, 2)|tojson }} {{ big|tojson }} {{ 'x'|tojson }} {{ none_|tojson }} {{ s|tojson(false, 2) }} {{ d|tojson(indent=4, separators=(', ', ' : ')) }} {{ (1e400)|tojson }} {{ d|tojson(indent=none) }} {{ d|tojson(indent=-1) }}
{{ missing|tojson }}
{{ {'a': missing}|tojson }}
{{ d.items()|tojson }}
{{ l|map('string')|tojson }}
{{ {(1,2): 3}|tojson }}
{{ {1: 2, 'a': 3}|tojson(sort_keys=true) }}
{{ n is defined }} {{ missing is defined }} {{ missing is undefined }} {{ missing is not defined }} {{ none_ is none }} {{ n is none }} {{ t is boolean }} {{ n is boolean }} {{ t is true }} {{ 1 is true }} {{ no is false }} {{ n is integer }} {{ t is integer }} {{ f is float }} {{ t is number }} {{ f is number }} {{ s is string }} {{ d is mapping }} {{ l is mapping }} {{ l is sequence }} {{ d is sequence }} {{ s is sequence }} {{ n is sequence }} {{ missing is sequence }} {{ s is iterable }} {{ n is iterable }} {{ missing is iterable }} {{ none_ is iterable }} {{ d.items() is sequence }} {{ d.items() is iterable }} {{ d.items() is mapping }} {{ l|map('string') is iterable }} {{ l|map('string') is sequence }} {{ range is callable }} {{ s is callable }} {{ missing is callable }} {{ big is integer }}
{{ 3 is odd }} {{ 3 is even }} {{ 4 is divisibleby 2 }} {{ 4 is divisibleby(3) }} {{ 2.0 is even }} {{ 'a' is lower }} {{ 'A' is upper }} {{ 'aB' is lower }} {{ 1 is lower }} {{ 1 is in l }} {{ 1 is in [2] }} {{ 1 is eq 1 }} {{ 1 is equalto 1 }} {{ 1 is ne 2 }} {{ 1 is gt 0 }} {{ 1 is lt 0 }} {{ 1 is ge 1 }} {{ 1 is le 1 }} {{ 1 is sameas 1 }} {{ none_ is sameas none }} {{ t is sameas true }} {{ 1 is sameas true }} {{ 'upper' is filter }} {{ 'nosuch' is filter }} {{ 'odd' is test }} {{ html|e is escaped }} {{ 'a' is escaped }} {{ 1 is not odd }} {{ n is not string and t }} {{ n is string or t }} {{ 1 is odd == true }}
{{ 'a' is odd }}
{{ missing is odd }}
{{ missing is lower }}
{{ cycler('a', 'b').next() }} {% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }} {% set j = joiner('|') %}{{ j() }}{{ j() }}{{ j() }} {{ dict(a=1, b=2) }} {{ dict(d, x=1) }} {{ dict([(1, 2)]) }} {{ namespace(a=1) }}
{{ raise_exception('boom ' ~ n) }}
{{ raise_exception(none) }}
{% if t %}{{ 'a'|nosuch }}{% endif %}
{% if no %}{{ 'a'|nosuch }}{% endif %}ok
{{ 'a'|nosuch if no else 'ok' }}
{% if no %}{{ 'a' is nosuch }}{% endif %}ok
{% if t %}{{ 'a' is nosuch }}{% endif %}
{{ strftime_now('%Y-%m-%d %H:%M:%S') }} {{ strftime_now('%d %b %Y') }} {{ strftime_now('%A, %B %e, %-d %-m %y %j %p %I %a %%') }} {{ strftime_now('%B %d, %Y') }} {{ strftime_now('%w %u %V %G %Z|%z|%f %D %F %T %R %c') }}
{{ strftime_now(1) }}
{{ [1, 2,] }} {{ (1, 2,) }} {{ {'a': 1,} }} {{ range(1,)|list }}
{{ [1,2,3][1] }} {{ 'abc'[1] }} {{ {'a': [1]}['a'][0] }} {{ 'abc'.upper()[0].lower() }} {{ (l|sort)[0] }} {{ l|sort|first }} {{ -l|first }} {{ -(l|first) }} {{ 2 - l|first }}
{{ foo is defined and foo.bar }} {{ (foo or {}).bar }} {{ foo['bar'] if foo is defined else 'd' }}
{{ 'a' if t else 'b' if no else 'c' }} {{ ('a' if no else 'b') ~ 'c' }} {{ [x for x in l] }}
{{ 'a' if t else 'b' if no else 'c' }} {{ ('a' if no else 'b') ~ 'c' }}
{{ f"x" }}
{% for x in l %}{{ x }}{% endfo %}
{% endif %}
{{ 1 + }}
{{ }}
{% if %}{% endif %}
{{ a b }}
{{ (1 }}
{{ 'abc }}
{% set true = 1 %}
{% for loop in l %}{% endfor %}
{% break %}
{% unknown %}
{{ 1 is odd is even }}
{# never closed
{% raw %}x
{{ lambda }} {{ self }}| {{ loop }}|
{% macro m() %}{% set ns2 = namespace(v=1) %}{% for i in l %}{% set ns2.v = ns2.v + i %}{% endfor %}{{ ns2.v }}{% endmacro %}{{ m()|int + 1 }}
{% macro outer() %}{% macro inner(x) %}<{{ x }}>{% endmacro %}{{ inner(1) }}{{ n }}{% endmacro %}{{ outer() }}
{% macro f1(a) %}{{ f2(a) }}{% endmacro %}{% macro f2(a) %}{{ a }}!{% endmacro %}{{ f1(1) }}
{% set x = [] %}{% for i in l %}{% set x = x + [i] %}{% endfor %}{{ x }}
{% set ns = namespace(x=[]) %}{% for i in l %}{% set ns.x = ns.x + [i] %}{% endfor %}{{ ns.x }}
{% set m = {'a': 1} %}{% set m = dict(m, b=2) %}{{ m }}
{%- for m in [{'role': 'user', 'content': 'x'}] -%}{{ '<|' + m['role'] + '|>' + m.content | trim + '</>' }}{%- endfor -%}
{{ '<' + 'a' | upper + '>' }} {{ 'a' ~ 'b' | upper }} {{ 1 + 2 | string }}
{{ (1, 2) | join('-') }} {{ 1, 2 }} {{ (1) }} {{ ((1, 2), 3) }}
{% set a = 1, %}{{ a }}
{% if 1, 2 %}x{% endif %}
{% for x in 1, 2 %}{{ x }}{% endfor %}
{% for x in l|sort(reverse=true) %}{{ x }}{% endfor %}
{% for x in (l if t else []) %}{{ x }}{% endfor %}
{% for x in d.a + [9] %}{{ x }}{% endfor %}
{{ d.a.__class__ }}|
{{ ''.__class__.__mro__ }}
{{ missing.__foo }}
{{ d.__foo }}|
{% set x = missing %}{{ x is defined }}{{ x }}
{% set x = y2 = 3 %}
{{ [missing] }} {{ {'a': missing} }} {{ (missing,) }} {{ [none_, t, f] }} {{ [s|upper] }} {{ [range(2)] }}
{{ 'x' in ['x' , 'y'] and 'z' not in ['x'] }} {{ 'a' in ('a', 'b') }}
{{ u|upper|lower }} {{ 'İ'|lower|length }} {{ 'ŉ'|upper }}
{{ 10 // 3 * 3 + 10 % 3 }} {{ 2 * 3 % 4 }} {{ 7 - 2 - 1 }} {{ 100 / 10 / 2 }} {{ 1.0 * 3 }} {{ 3 * 1.5 }} {{ 1e308 * 10 }} {{ -1e308 * 10 }} {{ 6 / 3 }} {{ 1 / 3 }} {{ 2 / 3.0 }} {{ 1e16 + 1 }} {{ 0.1 * 3 }}
""".strip("\n")

# A snippet is one line, or several joined by the ones after it that begin a block: here they are split at "\n" unless a
# line ends in the middle of a tag block. Multi-line ones are listed here.
MULTI = [
    "a\n", "a\n\n", "\na", "a\r\nb\rc\n", "{% if t %}\n\n x\n{% endif %}\n\ny", "  {% if t %}\n  x\n  {% endif %}\n",
    "  {%+ if t %}\n  x\n  {%+ endif %}\n", "{% if t +%}\n x{% endif +%}\ny", "x {%- if t %} y {% endif -%}\n\n z", "{{ 1 }}\n{{ 2 }}\n",
    "  {{ 1 }}\n  {# c #}\n  {{ 2 }}", "{# c #}\n\nx", "{#- c -#}\n\nx", "a\n  {#- c #}\nx", "\t{% set x = 1 %}\n\t{{ x }}", "a {% set x = 1 %}\nb",
    "{% for x in l %}\n- {{ x }}\n{% endfor %}\nend", "{%- for x in l %}\n- {{ x }}\n{%- endfor %}\nend", "{% raw %}\n a\n{% endraw %}\nb",
    "{%- raw %}\n a\n{%- endraw %}\n b", "  {% raw %} a {% endraw %}  \n", "{% set x %}\n a\n{% endset %}[{{ x }}]", "{{ '''a''' }}", "{{ 'a\nb' }}",
    "{{\n n\n}}\n\n", "{%\n if t\n%}\nx{% endif %}", "{{- n -}}\n x", "a\n{{- n }}", "{{ n -}}\n\n\n", "\u00a0{% if t %}x{% endif %}", "a\u2003{%- if t %}x{% endif -%}\u3000b",
    "{% macro m() %}\n x\n{% endmacro %}\n[{{ m() }}]", "{% macro m() -%}\n x\n{%- endmacro %}\n[{{ m() }}]", "{% if t %}a{% else %}\nb{% endif %}", "{", "{ {", "a{", "{}", "}}", "%}", "{{'{'}}{{'}'}}",
    "{%- if t -%}Effort: {{ n }}{%- endif -%}", "{%- if t -%}Effort: {{ n }} {%- endif -%}", "{% if t %}{# x #}\n{% endif %}\n", "\n\n{% if t %}\n{% endif %}\n\n",
    "{% for x in l %}{% if x == 3 %}\n {% continue %}\n{% endif %}\n{{ x }}\n{% endfor %}",
    "{% set ns = namespace(found=false) %}\n{% for m in l %}\n  {% if m == 1 %}{% set ns.found = true %}{% endif %}\n{% endfor %}\n{{ ns.found }}",
    "{{ 'a' * 1000000 * 1000000 }}",
]

LINES = []
for line in RAW.split("\n"):
    LINES.append(line)

if __name__ == "__main__":
    out = []
    for src in MULTI + LINES:
        try:
            compiled = hf._compile_jinja_template(src)
        except Exception as e:
            out.append({"src": src, "syntax": type(e).__name__})
            continue
        if "1000000 * 1000000" in src:
            continue  # Python would take the memory
        r = render(compiled, VARS)
        if " at 0x" not in r.get("out", ""):
            out.append({"src": src, **r})
    # One snippet per expression as well, so that one that fails hides no other.
    for line in LINES:
        if "{%" in line or line.count("{{") < 2:
            continue
        for part in line.split("{{ ")[1:]:
            src = "{{ " + part.split(" }}")[0] + " }}"
            try:
                r = render(hf._compile_jinja_template(src), VARS)
            except Exception as e:
                r = {"syntax": type(e).__name__}
            if " at 0x" not in r.get("out", ""):
                out.append({"src": src, **r})
    here = os.path.dirname(os.path.abspath(__file__))
    write(os.path.join(here, "snippets.json.zst"), {"vars": VARS, "snippets": out})
    print(len(out), "snippets,", sum("out" in o for o in out), "rendered,", sum("err" in o for o in out), "raised,",
          sum("syntax" in o for o in out), "do not compile")
