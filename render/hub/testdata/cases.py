"""Writes cases.json: small models' files, and what transformers makes of them: class, special tokens, ids.
Writes ids.json: the same for the real tokenizers that tests fetch.

usage: python cases.py TOKENIZERS OUT   (with transformers 5.19.0; compress the two files of OUT with zstd)
TOKENIZERS has NAME/tokenizer.json and NAME/tokenizer_config.json, as `make .tools/tokenizers/.fetched` fetches them.
"""

import copy
import json
import os
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer

TEXTS = [
    "", " ", "  ", "Hello there", " Hello  there ", "hello\nworld\n\n", "tab\tand\r\nline", "naïve café", "Ünïcödé é",
    "数据 東京 🙂", "12345 6 78", "don't I'LL we're", "<s>hi</s>", "<|endoftext|>x<|endoftext|>", "a<sep>b", " <sep> c",
    "<|im_start|>user\nhi<|im_end|>", "▁metaspace ▁ x", "x" * 50, "def f(x):\n    return x + 1\n", "\u200bzero", "<pad><unk>",
    "own<mask>ed", "e\u0301 combining", "A B  C   D", "हिन्दी भाषा", "<only_config> and <only_special>",
]


def train(byte_level):
    tok = Tokenizer(models.BPE(unk_token=None if byte_level else "<unk>"))
    specials = ["<unk>", "<s>", "</s>", "<pad>", "<mask>", "<sep>"]
    if byte_level:
        tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=["<|endoftext|>"] + specials,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    else:
        tok.pre_tokenizer = pre_tokenizers.Metaspace()
        alphabet = [f"<0x{b:02X}>" for b in range(256)]
        trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=specials + alphabet, show_progress=False)
    tok.train_from_iterator(TEXTS * 3, trainer)
    data = json.loads(tok.to_str())
    if not byte_level:
        data["added_tokens"] = [t for t in data["added_tokens"] if not t["content"].startswith("<0x")]
        data["model"]["byte_fallback"] = True
    return data


def with_bos(data, token):
    data = copy.deepcopy(data)
    i = data["model"]["vocab"][token]
    data["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {token: {"id": token, "ids": [i], "tokens": [token]}},
    }
    return data


BYTES, PIECES = train(True), train(False)
ADDED = {"__type": "AddedToken", "content": "<s>", "lstrip": False, "normalized": True, "rstrip": False, "single_word": False}


def cases():
    def case(name, tokenizer, config=None, network=None, more=None):
        files = {"tokenizer.json": tokenizer}
        if config is not None:
            files["tokenizer_config.json"] = config
        if network is not None:
            files["config.json"] = network
        files.update(more or {})
        return name, files

    for cls in ["PreTrainedTokenizerFast", "TokenizersBackend", "NoSuchTokenizer", "Qwen2Tokenizer", "Qwen2TokenizerFast",
                "Qwen3_5Tokenizer", "GPT2Tokenizer", "GPT2TokenizerFast", "GPTNeoXTokenizerFast", "CohereTokenizerFast",
                "LlamaTokenizerFast", "GemmaTokenizer"]:
        yield case("bytes " + cls, BYTES, {"tokenizer_class": cls})
        yield case("pieces " + cls, PIECES, {"tokenizer_class": cls})
        yield case("bytes with bos " + cls, with_bos(BYTES, "<s>"), {"tokenizer_class": cls, "add_bos_token": False, "bos_token": "<s>"})
        yield case("bytes with prefix space " + cls, BYTES, {"tokenizer_class": cls, "add_prefix_space": True})
    for legacy in [True, False, None]:
        for space in [True, False, None]:
            yield case(f"llama legacy {legacy} space {space}", with_bos(PIECES, "<s>"),
                       {"tokenizer_class": "LlamaTokenizer", "legacy": legacy, "add_prefix_space": space, "bos_token": ADDED})
    for kind in ["llama", "qwen2", "qwen3", "deepseek_v3", "gemma3", "mistral", "phi3", "gpt2", "gpt_neox", "nosuch"]:
        for cls in ["LlamaTokenizerFast", "PreTrainedTokenizerFast", "Qwen2Tokenizer", None]:
            yield case(f"{kind} by {cls}", BYTES, {"tokenizer_class": cls} if cls else {}, {"model_type": kind})
    yield case("no configuration", BYTES)
    yield case("no configuration but a model", BYTES, None, {"model_type": "llama", "tokenizer_class": "LlamaTokenizer"})
    decoder = {str(BYTES["model"]["vocab"]["<sep>"]): {"content": "<sep>", "lstrip": True, "rstrip": True, "single_word": False, "normalized": False, "special": True},
               "400": {"content": "<only_config>", "lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": False}}
    for cls in ["PreTrainedTokenizerFast", "Qwen2Tokenizer", "LlamaTokenizer"]:
        yield case("decoder " + cls, BYTES, {"tokenizer_class": cls, "added_tokens_decoder": decoder})
        yield case("empty decoder " + cls, BYTES, {"tokenizer_class": cls, "added_tokens_decoder": {}})
        yield case("additional " + cls, BYTES, {"tokenizer_class": cls, "additional_special_tokens": ["<only_special>", "<sep>"], "eos_token": "</s>"})
        yield case("extra named " + cls, BYTES, {"tokenizer_class": cls, "extra_special_tokens": {"image_token": "<only_special>"}, "audio_token": "<sep>"})
        yield case("special map " + cls, BYTES, {"tokenizer_class": cls, "bos_token": "<s>"}, None,
                   {"special_tokens_map.json": {"bos_token": "</s>", "pad_token": {"content": "<pad>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}}})


def answer(folder, texts):
    t = AutoTokenizer.from_pretrained(folder)
    return {
        "class": type(t).__name__,
        "specials": {k: str(v) for k, v in t.special_tokens_map.items()},
        "ids": [[t.encode(s, add_special_tokens=False), t.encode(s)] for s in texts],
    }


def main(tokenizers, out):
    list_ = []
    for name, files in cases():
        with tempfile.TemporaryDirectory() as folder:
            for file, content in files.items():
                with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
                    json.dump(content, f, ensure_ascii=False)
            try:
                list_.append({"name": name, "files": files, **answer(folder, TEXTS)})
            except Exception as e:
                list_.append({"name": name, "files": files, "error": type(e).__name__})
    with open(os.path.join(out, "cases.json"), "w") as f:
        json.dump({"texts": TEXTS, "cases": list_}, f)
    texts = TEXTS + ["The quick brown fox jumps over the lazy dog. " * 20]
    real = {n: answer(os.path.join(tokenizers, n), texts) for n in sorted(os.listdir(tokenizers)) if not n.startswith(".")}
    with open(os.path.join(out, "ids.json"), "w") as f:
        json.dump({"texts": texts, "models": real}, f)
    print(len(list_), "cases,", sum("error" in c for c in list_), "errors,", len(real), "models")


main(*sys.argv[1:])
