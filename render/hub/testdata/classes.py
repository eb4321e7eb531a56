"""Writes ../classes.json: which class transformers takes for a tokenizer, and whether the class uses tokenizer.json as it
is ("file"), builds its own tokenizer from the vocabulary ("own:CLASS") or is none of these ("other:CLASS").

usage: python classes.py > ../classes.json   (with transformers 5.19.0, that of vLLM 0.32)
"""

import inspect
import json
import sys

import transformers
from transformers.models.auto import tokenization_auto as auto
from transformers.tokenization_utils_tokenizers import TokenizersBackend


def kind(name):
    cls = auto.tokenizer_class_from_name(name)
    if cls is None:
        return None
    if not (inspect.isclass(cls) and issubclass(cls, TokenizersBackend)):
        return "other:" + cls.__name__
    if cls is TokenizersBackend or "__init__" not in cls.__dict__:
        return "file"
    return "own:" + cls.__name__


names = {v for v in auto.TOKENIZER_MAPPING_NAMES.values() if v}
names |= {n for n in dir(transformers) if n.endswith("Tokenizer") or n.endswith("TokenizerFast")}
json.dump(
    {
        "transformers": transformers.__version__,
        "classes": {n: k for n in sorted(names) if (k := kind(n))},
        "models": {k: v for k, v in sorted(auto.TOKENIZER_MAPPING_NAMES.items()) if v},
        "incorrect": sorted(auto.MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS),
    },
    sys.stdout,
    indent=0,
)
