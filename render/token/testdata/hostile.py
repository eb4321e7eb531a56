"""Writes hostile.json: random hostile strings and digests of the ids that Hugging Face's library gives for them.

usage: hostile.py TOKENIZERS SEED COUNT > hostile.json    (pip install tokenizers==0.22.2)
TOKENIZERS is what tools/tokenizers.sh has fetched. A digest is the CRC-32 of the ids as little-endian 32-bit integers,
special tokens added.
"""
import json, random, struct, sys, zlib
from tokenizers import Tokenizer

random.seed(int(sys.argv[2]))
SPACES = [" ", "  ", "\n", "\n\n", "\t", "\r\n", "\r", "\u00a0", "\u3000", "\u2028", "\u0085", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x1f"]
CONTRACTIONS = ["'s", "'S", "'t", "'RE", "'ve", "'M", "'ll", "'d", "'ſ", "’s", "'x"]
SPECIAL = ["<|im_start|>", "<|im_end|>", "<think>", "<|eot_id|>", "<bos>", "<｜User｜>", "<|channel|>", "<|", "|>", "<s>", "</s>", "<unused5>", "▁"]


def one():
    r = random.random()
    if r < .35: return chr(random.randint(32, 126))
    if r < .5: return random.choice(SPACES)
    if r < .55: return random.choice(CONTRACTIONS)
    if r < .58: return random.choice(SPECIAL)
    if r < .63: return random.choice("0123456789")
    if r < .7: return chr(random.randint(0xa0, 0x24f))
    if r < .76: return chr(random.randint(0x4e00, 0x9fff))
    if r < .8: return chr(random.choice([random.randint(0x3040, 0x30ff), random.randint(0xac00, 0xd7a3)]))
    if r < .84: return chr(random.randint(0x300, 0x36f))
    if r < .88: return chr(random.randint(0x1f300, 0x1faff))
    while True:
        c = random.choice([random.randint(0, 0xffff), random.randint(0x10000, 0x1ffff)])
        if not 0xd800 <= c <= 0xdfff: return chr(c)


strings = ["".join(one() for _ in range(random.randint(1, 40))) for _ in range(int(sys.argv[3]))]
digests = {}
for name in "qwen3 llama3 llama3_1 deepseek_v3 gptoss gemma3 llama2".split():
    t = Tokenizer.from_file(f"{sys.argv[1]}/{name}/tokenizer.json")
    digests[name] = [zlib.crc32(struct.pack(f"<{len(e.ids)}I", *e.ids)) for e in t.encode_batch(strings)]
json.dump({"strings": strings, "digests": digests}, sys.stdout, ensure_ascii=False, separators=(",", ":"))
