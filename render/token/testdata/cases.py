"""Writes cases.json: small tokenizers of every kind that this package reads, and the ids that Hugging Face's library
gives for hostile strings.

usage: cases.py > cases.json    (pip install tokenizers==0.22.2)
A case is a base tokenizer with some of its parts replaced. "ids" are of "strings", without and with special tokens.
"""
import json, random, sys
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

random.seed(20260130)

PROSE = """The quick brown fox doesn't jump over the lazy dog's 1234567890 tokens; I'll say we've seen it. HTTPServer
camelCase snake_case naïve café œuvre привет мир Ελληνικά 日本語のテキスト 中文分词 한국어 हिन्दी ไทย العربية.
for (int i = 0; i < 10; i++) { printf("%d\\n", i); }   // done   \t\tx\n\n\nend of text. What's 3.14159? ½ ² Ⅻ ٣٤٥
the the the then there their this that these those and and not no new now know """ * 3

WORDS = ["the ", " then", "'s", "'S", "'ſ", "'ll", "’re", "\u212a", "12345", "٣٤", "½", "²³", "Ⅻ", "\n", "\n\n", "\r\n", "\r", "\t",
         " ", "  ", "   ", "\u00a0", "\u3000", "\u2028", "\u0085", "\x0b", "\x1c", "\u200b", "\u200c", "\u200d", "\ufeff", "é", "e\u0301",
         "\u1e9b\u0323", "\u0344", "ﬁ", "ﷺ", "가", "\u1100\u1161\u11a8", "각\u11a8", "日本", "ひら", "カタ", "ǅ", "ß", "İ", "ı", "ʰ", "a\u0328\u0301",
         "\u0f71\u0f72", "\u0cc6\u0cc2\u0cd5", "\U00011131\U00011127", "\u1dfa", "\U0001e94a", "𝔘", "😀", "👩‍👩‍👧", "<s>", "</s>", "<a>", "<b>", "<c>", "<d>", "<e>", "<f>",
         "<unk>", "abc", "ABC", "aB", "Ab", "HTTPServer", "!", "?!", "...", "\"", "(", "_", "-", "/", "//", "\\", "%", "€", "™", "▁", "▁▁", "don't", "x1y2", "<0x0A>"]


def hostile(n):
    out = ["", " ", "a", "\n", "<a>", " <a> ", "<b>  x", "x<c>x", "x <c> x", "<c>", "  <d>  <d>  ", "<e>\n<e>", "é<f>", "a\u0301" + "\u0323\u0301" * 40 + "b",
           " hello  world ", "hello", "▁hello", "  ", "1" * 20, "a" * 100, " a" * 60, "\u0300" * 50, "<s></s><unk>", "ABCdef GHI'S", "\u00e9\u0327"]
    while len(out) < n:
        k = random.random()
        if k < 0.7:
            out.append("".join(random.choice(WORDS) for _ in range(random.randint(1, 14))))
        else:
            s = ""
            for _ in range(random.randint(1, 25)):
                c = random.choice([random.randint(32, 126), random.randint(0xA0, 0x24F), random.randint(0x300, 0x36F), random.randint(0, 0x2FFF), random.randint(0x10000, 0x1FFFF)])
                s += chr(c) if not 0xD800 <= c <= 0xDFFF else "x"
            out.append(s)
    return out


def train(byte_level):
    t = Tokenizer(models.BPE(byte_fallback=not byte_level, unk_token=None if byte_level else "<unk>", fuse_unk=not byte_level))
    special = [] if byte_level else ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    if byte_level:
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    else:
        t.normalizer = normalizers.Replace(" ", "▁")
        alphabet = list("▁abcdefghijklmnopqrstuvwxyz")
    t.train_from_iterator([PROSE], trainers.BpeTrainer(vocab_size=900 if byte_level else 700, special_tokens=special, initial_alphabet=alphabet, show_progress=False))
    d = json.loads(t.to_str())
    d["added_tokens"] = []
    d["normalizer"] = d["pre_tokenizer"] = d["post_processor"] = d["decoder"] = None
    return d


BASES = {"bytes": train(True), "chars": train(False)}


def regex(r, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": r}, "behavior": behavior, "invert": invert}


def text(s, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"String": s}, "behavior": behavior, "invert": invert}


def byte_level(prefix=False, use_regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": use_regex}


def pre(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def metaspace(scheme, split):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}


def added(content, i, single=False, left=False, right=False, normalized=False, special=False):
    return {"id": i, "content": content, "single_word": single, "lstrip": left, "rstrip": right, "normalized": normalized, "special": special}


CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "cl100k": CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + TAIL,
    "cl100k_possessive": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    "cl100k_class": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    "qwen2": CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + TAIL,
    "qwen3_5": CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "o200k": rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTION}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTION}?|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "tekken": rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "kimi": r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "digits_groups": r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))|\p{L}+|[^\p{L}\p{N}]",
    "behind": r"(?<=\p{L})\p{N}+|(?<!\s)[!-/]|\s",
    "atomic": r"(?>a+)b|(?:ab|[a-c])+|x(?:y|z)*|\s++",
    "groups": r"(?:\p{L}\p{M}*)+|(?:[0-9]{2})+|(\.\.\.|\.)|[^\S\r\n]+|[\r\n]+",
    "ignorecase": r"(?i)the|[a-d]+k?|\s+",
    "word": r"\w+|[^\w\s]+|\s",
    "ranges": r"[一-龥぀-ゟ゠-ヿ]+|[\x20-\x7E]|[\u0400-\u04FF]+|[\x{1F300}-\x{1FAFF}]",
    "negated": r"\P{L}+|[^\P{Lu}]|[\p{^Ll}a]+",
    "cl100k_new": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "line_end": r"a+$|[^\n]{2}$|\s{2,3}+|\p{L}{2}+.|b$c",
    "dots": r".{1,4}|\n",
}

LLAMA3 = pre(regex(PATTERNS["cl100k"]), byte_level())
DEEPSEEK = pre(regex(r"\p{N}{1,3}"), regex("[一-龥぀-ゟ゠-ヿ]+"), regex("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"), byte_level())
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
PREPEND = {"type": "Prepend", "prepend": "▁"}


def norm(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


def cases():
    for name, pattern in PATTERNS.items():
        yield "pattern " + name, "bytes", {"pre_tokenizer": pre(regex(pattern), byte_level())}
        yield "pattern removed inverted " + name, "bytes", {"pre_tokenizer": pre(regex(pattern, "Removed", True), byte_level())}
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            yield f"split {behavior} {invert}", "bytes", {"pre_tokenizer": pre(regex(r"\s", behavior, invert), byte_level())}
            yield f"split text {behavior} {invert}", "bytes", {"pre_tokenizer": pre(text("the", behavior, invert), byte_level())}
        yield f"punctuation {behavior}", "bytes", {"pre_tokenizer": pre({"type": "Punctuation", "behavior": behavior}, byte_level())}
    for prefix in (False, True):
        for use in (False, True):
            yield f"byte level {prefix} {use}", "bytes", {"pre_tokenizer": byte_level(prefix, use)}
    yield "starcoder", "bytes", {"pre_tokenizer": pre({"type": "Digits", "individual_digits": True}, byte_level(False, True))}
    yield "digits", "bytes", {"pre_tokenizer": pre({"type": "Digits", "individual_digits": False}, byte_level(False, True))}
    yield "falcon", "bytes", {"pre_tokenizer": pre({"type": "Punctuation", "behavior": "Contiguous"}, byte_level(False, True), {"type": "Digits", "individual_digits": False}, regex("[0-9][0-9][0-9]"))}
    yield "white space", "bytes", {"pre_tokenizer": pre({"type": "Whitespace"}, byte_level())}
    yield "white space split", "bytes", {"pre_tokenizer": pre({"type": "WhitespaceSplit"}, byte_level())}
    yield "deepseek", "bytes", {"pre_tokenizer": DEEPSEEK}
    yield "no pre-tokenizer", "bytes", {}
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        yield form, "bytes", {"normalizer": {"type": form}, "pre_tokenizer": LLAMA3}
        yield form + " chars", "chars", {"normalizer": norm({"type": form}, REPLACE)}
    yield "byte level normalizer", "bytes", {"normalizer": {"type": "ByteLevel"}, "pre_tokenizer": regex("Ġ?[A-Za-z]+")}
    yield "strip", "bytes", {"normalizer": {"type": "Strip", "strip_left": True, "strip_right": True}, "pre_tokenizer": LLAMA3}
    yield "strip left", "chars", {"normalizer": norm({"type": "Strip", "strip_left": True, "strip_right": False}, REPLACE)}
    yield "replace pattern", "chars", {"normalizer": norm({"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}, REPLACE)}
    yield "replace text", "chars", {"normalizer": norm({"type": "Replace", "pattern": {"String": "the"}, "content": ""}, REPLACE)}
    yield "llama 2", "chars", {"normalizer": norm(PREPEND, REPLACE)}
    yield "gemma", "chars", {"normalizer": REPLACE, "pre_tokenizer": text(" ", "MergedWithPrevious")}
    for scheme in ("always", "first", "never"):
        for split in (False, True):
            yield f"metaspace {scheme} {split}", "chars", {"pre_tokenizer": metaspace(scheme, split)}
            yield f"metaspace {scheme} {split} nfc", "chars", {"normalizer": {"type": "NFC"}, "pre_tokenizer": metaspace(scheme, split)}
            yield f"metaspace {scheme} {split} split", "chars", {"pre_tokenizer": pre(regex(r"\p{N}"), metaspace(scheme, split)), "added_tokens": "flags"}
    for bf in (False, True):
        for fuse in (False, True):
            for unk in (None, "<unk>"):
                for ignore in (False, True):
                    yield f"model {bf} {fuse} {unk} {ignore}", "chars", {"normalizer": REPLACE, "model": {"byte_fallback": bf, "fuse_unk": fuse, "unk_token": unk, "ignore_merges": ignore}}
                yield f"model some bytes {bf} {fuse} {unk}", "chars", {"normalizer": norm(PREPEND, REPLACE), "model": {"byte_fallback": bf, "fuse_unk": fuse, "unk_token": unk}, "drop": ["<0xC3>", "<0x0A>"]}
    yield "ignore merges", "bytes", {"pre_tokenizer": LLAMA3, "model": {"ignore_merges": True}}
    yield "holes", "bytes", {"pre_tokenizer": LLAMA3, "drop": ["Ã", "Ĭ"]}
    yield "holes and fallback", "bytes", {"pre_tokenizer": LLAMA3, "drop": ["Ã", "Ĭ"], "model": {"byte_fallback": True, "unk_token": "a"}}
    for base, parts in (("bytes", {"pre_tokenizer": LLAMA3}), ("bytes", {"pre_tokenizer": LLAMA3, "normalizer": {"type": "NFKC"}}),
                        ("chars", {"normalizer": norm(PREPEND, REPLACE)}), ("chars", {"pre_tokenizer": metaspace("first", False)}), ("chars", {"normalizer": REPLACE})):
        for kind in ("flags", "plain", "normalized", "nested"):
            yield f"added {kind} {base} {len(json.dumps(parts))}", base, dict(parts, added_tokens=kind)
    bos = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    eos = {"SpecialToken": {"id": "</s>", "type_id": 0}}
    seq_a, seq_b = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}
    special = {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}, "</s>": {"id": "</s>", "ids": [2, 5], "tokens": ["</s>", "x"]}}
    template = lambda single: {"type": "TemplateProcessing", "single": single, "pair": [seq_a, seq_b], "special_tokens": special}
    bl = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
    yield "template", "chars", {"normalizer": REPLACE, "post_processor": template([bos, seq_a, eos])}
    yield "template twice", "chars", {"normalizer": REPLACE, "post_processor": template([seq_a, bos, seq_a])}
    yield "template in sequence", "bytes", {"pre_tokenizer": LLAMA3, "post_processor": {"type": "Sequence", "processors": [bl, template([bos, seq_a])]}}
    yield "post byte level", "bytes", {"pre_tokenizer": LLAMA3, "post_processor": bl}
    yield "roberta", "bytes", {"pre_tokenizer": byte_level(True, True), "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True, "add_prefix_space": True}}
    yield "bert post", "bytes", {"pre_tokenizer": LLAMA3, "post_processor": {"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]}}


def tokens(kind, n):
    return {
        "flags": [added("<a>", n, left=True, special=True), added("<b>", n + 1, right=True), added("<c>", n + 2, single=True), added("<d>", n + 3, left=True, right=True, single=True),
                  added("<e>", n + 4, left=True, right=True, special=True), added("<f>", n + 5, normalized=True, left=True)],
        "plain": [added(c, n + i, special=i % 2 == 0) for i, c in enumerate(["<a>", "<b>", "<c>", "\n", "\n\n", "  ", "▁▁", "日本"])],
        "normalized": [added("<a>", n, normalized=True), added("é", n + 1, normalized=True, single=True), added("ﬁ", n + 2, normalized=True), added(" the", n + 3, normalized=True), added("then", n + 4)],
        "nested": [added("the", n), added("<a", n + 1), added("<a>", n + 2, special=True), added("<a><b", n + 3), added("then ", n + 4, right=True), added(" th", n + 5, normalized=True), added("he", n + 6, normalized=True, special=True)],
    }[kind]


def build(base, parts):
    d = json.loads(json.dumps(BASES[base]))
    drop = set(parts.get("drop", ()))
    if drop:
        d["model"]["vocab"] = {k: v for k, v in d["model"]["vocab"].items() if k not in drop and not (base == "bytes" and set(k) & drop)}
        d["model"]["merges"] = [m for m in d["model"]["merges"] if all(w in d["model"]["vocab"] for w in (m[0], m[1], m[0] + m[1]))]
    for k, v in parts.items():
        if k == "model":
            d["model"].update(v)
        elif k == "added_tokens":
            n = len(d["model"]["vocab"])
            d[k], have = [], 0
            for t in tokens(v, n):
                if t["content"] in d["model"]["vocab"]:
                    t["id"] = d["model"]["vocab"][t["content"]]
                else:
                    t["id"], have = n + have, have + 1
                d[k].append(t)
        elif k != "drop":
            d[k] = v
    return d


STRINGS = hostile(160)
out = []
for name, base, parts in cases():
    d = build(base, parts)
    t = Tokenizer.from_str(json.dumps(d))
    case = {"name": name, "base": base, "parts": {k: d[k] for k in d if k != "model" and d[k] != BASES[base][k]}}
    if "model" in parts or "drop" in parts:
        case["parts"]["model"] = d["model"]
    case["ids"] = [[t.encode(s, add_special_tokens=special).ids for s in STRINGS] for special in (False, True)]
    out.append(case)
json.dump({"strings": STRINGS, "bases": BASES, "cases": out}, sys.stdout, ensure_ascii=False, separators=(",", ":"))
print(len(out), "cases", file=sys.stderr)
