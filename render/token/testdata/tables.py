"""Writes unicode.txt: what the reference knows of code points, asked of the reference itself.

usage: tables.py TABLES_RS > unicode.txt
Character sets are asked of Hugging Face's tokenizers (pip install tokenizers==0.22.2), which matches patterns with
Oniguruma: every code point that a pattern takes. Normalization data is read from src/tables.rs of the crate
unicode-normalization-alignments 0.1.12 that the library links (Unicode 9.0).
"""
import re, sys
from tokenizers import Regex, normalizers, pre_tokenizers

ALL = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF)

CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn".split()
SCRIPTS = """Arabic Armenian Bengali Bopomofo Common Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han
Hangul Hebrew Hiragana Inherited Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Oriya Sinhala Tamil Telugu
Thaana Thai Tibetan""".split()


def ranges(chars):
    out, first, last = [], None, None
    for c in sorted(chars):
        if last is not None and c == last + 1:
            last = c
            continue
        if first is not None:
            out.append((first, last))
        first = last = c
    if first is not None:
        out.append((first, last))
    return " ".join(f"{a:X}" if a == b else f"{a:X}-{b:X}" for a, b in out)


def taken(pattern):
    left = normalizers.Replace(Regex(pattern), "").normalize_str(ALL)
    return set(map(ord, ALL)) - set(map(ord, left))


def emit(name, chars):
    print("set", name, ranges(chars))


def sets():
    for name in CATEGORIES:
        emit(name, taken(r"\p{%s}" % name))
    for name in SCRIPTS:
        emit(name, taken(r"\p{%s}" % name))
    emit("\\s", taken(r"\s"))
    emit("\\d", taken(r"\d"))
    emit("\\w", taken(r"\w"))
    # What the library asks of Rust's standard library and of other crates, not of Oniguruma.
    single = lambda pre: {ord(p) for p, _ in pre.pre_tokenize_str("a" + "a".join(ALL) + "a") if len(p) == 1 and p != "a"}
    emit("digits", single(pre_tokenizers.Digits(individual_digits=True)))
    emit("punctuation", single(pre_tokenizers.Punctuation("isolated")))
    kept = "".join(p for p, _ in pre_tokenizers.WhitespaceSplit().pre_tokenize_str(ALL))  # drops what it takes
    emit("whitespace", set(map(ord, ALL)) - set(map(ord, kept)))
    words = pre_tokenizers.Whitespace().pre_tokenize_str("".join(f"a{c} " for c in ALL))  # \\w+|[^\\w\\s]+ of crate regex
    emit("word", {ord(p[1]) for p, _ in words if len(p) == 2 and p[0] == "a"})


def table(text, name):
    body = re.search(r"const %s: [^=]*= &\[(.*?)\n\];" % name, text, re.S).group(1)
    return body


def chars(s):
    return [int(x, 16) for x in re.findall(r"\\u\{([0-9A-Fa-f]+)\}", s)]


def normalization(path):
    text = open(path).read()
    ccc = {}
    for kv in re.findall(r"0x([0-9a-fA-F]+)", table(text, "CANONICAL_COMBINING_CLASS_KV")):
        kv = int(kv, 16)
        ccc.setdefault(kv & 0xFF, set()).add(kv >> 8)
    for c in sorted(ccc):
        print("ccc", c, ranges(ccc[c]))
    for name, const in (("canonical", "CANONICAL_DECOMPOSED_KV"), ("compatible", "COMPATIBILITY_DECOMPOSED_KV")):
        for key, value in sorted((int(k, 16), chars(v)) for k, v in re.findall(r"\(0x([0-9a-fA-F]+), &\[(.*?)\]\)", table(text, const), re.S)):
            print(name, f"{key:X}", " ".join(f"{c:X}" for c in value))
    pairs = [(int(k, 16) >> 16, int(k, 16) & 0xFFFF, chars(v)[0]) for k, v in re.findall(r"\(0x([0-9a-fA-F]+), ('.*?')\)", table(text, "COMPOSITION_TABLE_KV"))]
    astral = re.search(r"fn composition_table_astral.*?\n\}", text, re.S).group(0)
    for a, b, c in re.findall(r"\('\\u\{([0-9A-F]+)\}', '\\u\{([0-9A-F]+)\}'\) => Some\('\\u\{([0-9A-F]+)\}'\)", astral):
        pairs.append((int(a, 16), int(b, 16), int(c, 16)))
    for a, b, c in sorted(pairs):
        print("compose", f"{a:X} {b:X} {c:X}")


sets()
normalization(sys.argv[1])
