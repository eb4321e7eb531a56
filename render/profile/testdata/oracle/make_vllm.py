"""Writes vllm.json.zst: bodies and what vLLM 0.32 makes of them before tokenizing.

    pip install vllm==0.32.0 zstandard     # the CPU build will do
    python make_vllm.py GOLDENS.json.zst TOKENIZER_DIR

GOLDENS is render/chat/testdata/oracle/goldens.json.zst, whose templates are used; TOKENIZER_DIR holds any tokenizer.json
with its tokenizer_config.json. vLLM's own classes validate the bodies and render the messages; only the tokenizing is
left out. Each case: {"template", "body", "text"} or {"template", "body", "refused"}.
"""
import copy, json, os, random, sys, tempfile, shutil
from types import SimpleNamespace
import zstandard
from transformers import AutoTokenizer
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.generate.base.protocol import validate_request_mm_kwargs
from vllm.renderers import hf
from vllm.renderers.chat_utils import parse_chat_messages
from vllm.renderers.params import merge_kwargs

class Config(SimpleNamespace):
    """A model's configuration: what is not said is None."""

    def __getattr__(self, name):
        return None


CONFIG = Config(max_model_len=2048, trust_remote_code=False, revision=None, code_revision=None, enable_prompt_embeds=False,
                         multimodal_config=None, hf_config=SimpleNamespace(model_type="x"), is_multimodal_model=False)
TEMPLATES = ["npm-qwen3", "npm-llama3_1", "npm-deepseek_v3", "npm-gemma3", "Mistral-Medium-3.5-128B-GGUF", "Qwen3-VL-30B-A3B-Instruct-Q8_0",
             "Llama-3.2-1B-Instruct-GGUF", "GLM-5.2", "laguna", "Qwen3.6-35B-A3B-UD-Q4_K_M"]

# There is no processor: text models only.
hf._try_get_processor_chat_template = lambda *args, **kwargs: None

# Prints what the template is given, in one look.
PROBE_STRING = "{{ messages|tojson }}|{{ tools|tojson }}|{{ documents|tojson }}|{{ add_generation_prompt }}|{{ bos_token }}|{{ enable_thinking|default('-') }}|{{ reasoning_effort|default('-') }}|{{ foo|default('-')|string }}"
PROBE_PARTS = "{% for m in messages %}{% for p in m.content %}{% endfor %}{% endfor %}" + PROBE_STRING
PROBE_DEVELOPER = "{% if 'developer' %}{% endif %}" + PROBE_STRING
PROBE_CONTINUE = "{% for m in messages %}<{{ m.role }}>{{ m.content if m.content is string else m.content[-1].text }}</>{% endfor %}"
PROBE_CONTINUE_TRIM = "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }}</>{% endfor %}"
PROBES = {"probe-string": PROBE_STRING, "probe-parts": PROBE_PARTS, "probe-developer": PROBE_DEVELOPER,
          "probe-continue": PROBE_CONTINUE, "probe-continue-trim": PROBE_CONTINUE_TRIM}


def render(tokenizer, template, body):
    tokenizer.chat_template = template
    hf._CONTENT_FORMATS.clear()
    try:
        request = ChatCompletionRequest.model_validate(json.loads(body))
        if request.model not in (None, "", "m"):
            raise ValueError("model")
        if request.use_beam_search:
            raise ValueError("beam search")
        tools = None if request.tools is None else [t.model_dump() for t in request.tools]
        kwargs = request.chat_template_kwargs
        if request.chat_template is not None or kwargs and kwargs.get("chat_template") is not None:
            raise ValueError("chat template in the request")
        validate_request_mm_kwargs(mm_processor_kwargs=request.mm_processor_kwargs, media_io_kwargs=request.media_io_kwargs,
                                   trust_request_mm_kwargs=False)
        defaults = merge_kwargs({}, dict(tools=tools, tokenize=False))
        request.build_tok_params(CONFIG)
        params = request.build_chat_params(None, "auto").with_defaults(defaults)
        format = hf.resolve_chat_template_content_format(
            chat_template=params.chat_template, tools=params.chat_template_kwargs.get("tools"),
            given_format=params.chat_template_content_format, tokenizer=tokenizer, model_config=CONFIG)
        conversation, data, _ = parse_chat_messages(request.messages, CONFIG, content_format=format)
        if data:
            raise ValueError("multimodal")
        text = hf.safe_apply_chat_template(CONFIG, tokenizer, conversation, **params.get_apply_chat_template_kwargs())
        text.encode()
        wanted = request.max_completion_tokens if request.max_completion_tokens is not None else request.max_tokens
        request.to_sampling_params(min(1024, wanted) if wanted is not None else 1024, {})
        return {"text": text}
    except Exception as e:
        return {"refused": type(e).__name__ + ": " + str(e)[:200]}


def messages():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"b\":1.0,\"a\":[2e3,null,true,\"é\"]}"}}
    def with_args(a, **k):
        return {"role": "assistant", "content": None, "tool_calls": [{**copy.deepcopy(call), **k, "function": {"name": "f", "arguments": a}}]}
    text = {"type": "text", "text": "part"}
    user = {"role": "user", "content": "q"}
    return [
        [user], [{"role": "user", "content": "  a \n b "}], [{"content": "q", "role": "user", "zzz": 1}],
        [{"role": "user", "content": [text]}], [{"role": "user", "content": [text, {"type": "text", "text": "two"}]}],
        [{"role": "user", "content": [{"text": "a", "type": "text", "cache_control": {"type": "ephemeral"}, "x": 1.0}]}],
        [{"role": "user", "content": [{"type": "text", "text": ""}, text, {"type": "text", "text": ""}]}],
        [{"role": "user", "content": []}], [{"role": "user"}], [{"role": "user", "content": ""}],
        [{"role": "user", "content": [{"type": "text"}]}], [{"role": "user", "content": [{"type": "text", "text": None}]}],
        [{"role": "user", "content": [{"type": "text", "text": 5}]}], [{"role": "user", "content": None}], [{"role": "user", "content": 5}],
        [{"role": "user", "content": [{"type": "refusal", "refusal": "no"}]}], [{"role": "user", "content": [{"type": "thinking", "thinking": "hm"}, text]}],
        [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}], [{"role": "user", "content": ["a"]}], [{"role": "user", "content": ["a", text]}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}],
        [{"role": "system", "content": "s"}, user], [{"role": "system", "content": [text, text]}, user], [{"role": "system"}, user],
        [{"role": "system", "content": None}, user],
        [{"role": "system", "content": "x-anthropic-billing-header: cch=1\nrest"}, user], [{"role": "system", "content": "x-anthropic-billing-header: cch=1"}, user],
        [{"role": "system", "content": [{"type": "text", "text": "x-anthropic-billing-header: a"}, {"type": "text", "text": "keep"}]}, user],
        [{"role": "developer", "content": "d"}, user], [{"role": "developer", "content": "d"}, {"role": "system", "content": "s"}, user],
        [{"role": "system", "content": "s"}, user, {"role": "developer", "content": "d"}, user], [user, {"role": "system", "content": "late"}, user],
        [user, {"role": "developer", "content": [text, text]}, user], [{"role": "developer", "content": ""}, {"role": "developer", "content": "e"}, user],
        [{"role": "critic", "content": "c"}, user], [{"role": "user", "content": "q", "name": "sam"}], [{"role": "user", "content": "q", "name": None}],
        [{"role": "user", "content": "q", "name": 5}], [{"role": "user", "content": "q", "task": "t"}], [{"role": "user", "content": "q", "task": 5}],
        [user, {"role": "assistant", "content": "a"}, user], [user, {"role": "assistant", "content": None}, user], [user, {"role": "assistant"}, user],
        [user, {"role": "assistant", "content": [text, text]}, user], [user, {"role": "assistant", "content": "a", "reasoning": "r"}, user],
        [user, {"role": "assistant", "content": "a", "reasoning_content": "r"}, user],
        [user, {"role": "assistant", "content": "a", "reasoning_content": "r", "reasoning": "s"}, user],
        [user, {"role": "assistant", "content": "a", "reasoning_content": "r", "reasoning": None}, user], [user, {"role": "assistant", "content": "a", "reasoning": ""}, user],
        [user, {"role": "assistant", "content": "a", "refusal": None, "audio": None, "function_call": None}, user],
        [user, {"role": "assistant", "content": "a", "tool_calls": []}, user], [user, {"role": "assistant", "content": "a", "tool_calls": None}, user],
        [user, {"role": "assistant", "content": "a", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "r"}],
        [user, {"role": "assistant", "tool_calls": [call, {**call, "id": "c2", "x": 1}]}, {"role": "tool", "tool_call_id": "c1", "content": [text, text]},
         {"role": "tool", "tool_call_id": "c2", "content": "r", "name": "f"}],
        [user, with_args(""), {"role": "tool", "content": "r"}], [user, with_args("  "), user], [user, with_args("{}"), user], [user, with_args("[1]"), user],
        [user, with_args("not json"), user], [user, with_args("null"), user], [user, with_args("{\"a\":1,\"a\":2,\"b\":NaN,\"c\":-Infinity,\"d\":1e400,\"e\":-0.0,\"f\":-0}"), user],
        [user, with_args("{\"a\":123456789012345678901234567890,\"b\":0.1e-7,\"c\":1.10}"), user], [user, with_args("\ufeff{}"), user],
        [user, with_args("{\"a\":\"\\ud83d\\ude42 \\u00e9\"}"), user], [user, with_args({"a": 1}), user], [user, with_args(None), user], [user, with_args("{}", type="custom"), user],
        [user, {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f"}}]}, user],
        [user, {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": "{}"}}]}, user],
        [user, {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]}, user],
        [user, {"role": "assistant", "tool_calls": [{"type": "function", "function": {"z": 2, "name": "f", "arguments": "{}"}, "x": 1, "id": "c"}]}, user],
        [user, {"role": "assistant", "tool_calls": ["x"]}, user], [user, {"role": "assistant", "tool_calls": "x"}, user],
        [{"role": "tool", "content": "r", "tool_call_id": None}], [{"role": "tool", "content": "r", "tool_call_id": 5}], [{"role": "tool", "content": None}],
        [{"role": "tool", "content": []}], [{"role": "tool", "content": [{"type": "text", "text": ""}, text]}], [{"role": "function", "name": "f", "content": None}],
        [{"role": "function", "name": "f", "content": "x"}], [{"role": 5, "content": "x"}], [{"content": "x"}], ["x"], [5], [],
        [user, {"role": "assistant", "content": "tail  "}], [user, {"role": "assistant", "content": [text, {"type": "text", "text": "tail "}]}],
        [user, {"role": "assistant", "content": ""}], [user, {"role": "user", "content": "\ud83d"}],
    ]


def fields():
    f = {"name": "f", "description": "d <é>", "parameters": {"type": "object", "properties": {"z": {"maximum": 1.0}, "a": {}}}}
    tool = {"type": "function", "function": f}
    tools = [
        [tool], [{"function": {"parameters": {"b": 1}, "strict": True, "name": "f", "zz": 1}, "x": 1}], [{"type": "function", "function": {"name": "f"}}],
        [{"type": "function", "function": {"name": "f", "description": None, "parameters": None, "strict": None}}], [{"type": "function", "function": {"name": "f", "strict": "yes"}}],
        [{"type": "function", "function": {"name": "f", "strict": False}, "defer_loading": True}], [{"type": "function", "function": {"name": "f", "defer_loading": False}}],
        [tool, {"type": "function", "function": {"name": "g"}}], [], {}, "x", [5], [{"type": "x", "function": {"name": "f"}}], [{"type": "function"}],
        [{"type": "function", "function": {"name": 5}}], [{"type": "function", "function": {"name": "f", "description": 5}}], [{"type": "function", "function": {"name": "f", "parameters": []}}],
        [{"type": "function", "function": {}}], None,
    ]
    out = [{"tools": t} for t in tools]
    out += [{"tools": [tool], "tool_choice": c} for c in ("none", "auto", "required", None, "zz", {"type": "function", "function": {"name": "f"}},
            {"function": {"name": "f"}}, {"type": "function", "function": {"name": "g"}}, {"type": "x", "function": {"name": "f"}}, {"function": {}}, {}, 5)]
    out += [{"tool_choice": c} for c in ("none", "auto", None, "zz", {"function": {"name": "f"}})]
    singles = {
        "model": ["m", "x", None, "", 5], "n": [1, 2, 0, -1, None, "2", 2.0, 2.5], "max_tokens": [5, "5", 0, -1, 1.5, None, 99999], "max_completion_tokens": [5, 0, 99999, None],
        "temperature": [0, 1, 2.5, -1, "0.5", "x", None, True], "top_p": [0, 1, 0.5, 2, None], "top_k": [-1, 0, 5, -2, "x", None], "min_p": [0, 1, 2, -1],
        "presence_penalty": [2, 3, -2, None], "frequency_penalty": [-3], "repetition_penalty": [0, 1, -1], "stream": [True, "true", "x", 1, 2, None],
        "add_generation_prompt": [True, False, None, "false", 0], "continue_final_message": [True, False], "echo": [True, None], "add_special_tokens": [True, None, "yes"],
        "documents": [[{"title": "t", "text": "x"}], [], None, [{"a": 1}], 5, ["x"]], "reasoning_effort": ["none", "low", "high", "zz", None, 5],
        "chat_template_kwargs": [{}, None, [], {"enable_thinking": False}, {"enable_thinking": None}, {"foo": [1, {"b": 2.0}]}, {"foo": "auto"}, {"foo": None}, {"messages": []},
            {"chat_template": "x"}, {"chat_template": None}, {"add_generation_prompt": False}, {"bos_token": "B"}, {"reasoning_effort": "low"}, {"documents": [{"a": 1}]},
            {"documents": 5}, {"unused": 1}, {"tokenize": True}, {"tools": []}, {"conversation": []}],
        "chat_template": ["x", None, 5, ""], "truncate_prompt_tokens": [5, -1, -2, None, "5", 99999], "truncation_side": ["left", "x", None], "user": ["u", 5, None],
        "stop": ["a", ["a"], [], 5, ["a"] * 5, [""], "", None], "seed": [1, 2**70, -1, None], "top_logprobs": [0, 2, -5, None], "logprobs": [True, 5],
        "response_format": [{"type": "text"}, {"type": "json_object"}, {"type": "x"}, {"type": "json_schema"}, {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}, None],
        "stream_options": [{}, {"include_usage": True}, None], "cache_salt": ["s", "", "a@b", "a" * 129, 5, None], "bad_words": [[], ["a"], None, [""]],
        "stop_token_ids": [[1], ["a"], None], "prompt_logprobs": [0, 1, -2, None], "mm_processor_kwargs": [{"a": 1}, {}, None], "request_id": ["r", 5], "priority": [1, "a"],
        "include_reasoning": [True, None], "parallel_tool_calls": [True, None, "x"], "min_tokens": [1, None, -1], "ignore_eos": [True, None], "use_beam_search": [False, True],
        "metadata": [{"a": 1}, 5], "store": [True], "service_tier": ["auto"], "nvext": [{"a": 1}], "functions": [[]], "kv_transfer_params": [{}, None, 5],
        "session_id": ["s", 5], "messages": [{}, "abc", None],
    }
    out += [{k: v} for k, values in singles.items() for v in values]
    out += [{"continue_final_message": True, "add_generation_prompt": False}, {"continue_final_message": True, "add_generation_prompt": True},
            {"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": False}}, {"reasoning_effort": "none", "chat_template_kwargs": {"reasoning_effort": "high"}},
            {"logprobs": True, "top_logprobs": 2}, {"stream": True, "prompt_logprobs": 1}, {"stream": True, "stream_options": {"include_usage": True}}, {"n": 2, "temperature": 0},
            {"max_tokens": 5, "min_tokens": 6}, {"max_tokens": 99999, "max_completion_tokens": 5}]
    return out


def main(goldens, directory):
    loaded = json.loads(zstandard.ZstdDecompressor().decompress(open(goldens, "rb").read(), 1 << 26))
    home = tempfile.mkdtemp()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(directory, name), home)
    tokenizer = AutoTokenizer.from_pretrained(home)
    tokenizer.bos_token = "<B>"
    sources = {**PROBES, **{n: loaded["templates"][n]["src"] for n in TEMPLATES}}
    cases = []

    def add(template, body):
        text = json.dumps(body)
        cases.append({"template": template, "body": text, **render(tokenizer, sources[template], text)})

    several = messages()
    for probe in ("probe-string", "probe-parts", "probe-developer"):
        for m in several:
            add(probe, {"model": "m", "messages": m})
    for f in fields():
        add("probe-string", {"model": "m", "messages": several[0], **f})
    for probe in ("probe-continue", "probe-continue-trim"):
        for m in several:
            add(probe, {"messages": m, "continue_final_message": True, "add_generation_prompt": False})
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"b": 1.0}}}]
    for name in TEMPLATES:
        for m in several:
            add(name, {"messages": m, "tools": tools})
            add(name, {"messages": m, "chat_template_kwargs": {"enable_thinking": False}})
    formats = {}
    for name, t in loaded["templates"].items():
        formats[name] = hf._detect_content_format(t["src"], default="string")
    data = {"templates": sources, "special_tokens": tokenizer.special_tokens_map, "cases": cases, "formats": formats}
    here = os.path.dirname(os.path.abspath(__file__))
    open(os.path.join(here, "vllm.json.zst"), "wb").write(zstandard.ZstdCompressor(level=19).compress(json.dumps(data).encode()))
    print(len(cases), "cases,", sum("text" in c for c in cases), "rendered", tokenizer.special_tokens_map, sorted(__import__("vllm.renderers.chat_utils").renderers.chat_utils._KNOWN_CONTENT_PART_FIELDS))


if __name__ == "__main__":
    main(*sys.argv[1:3])
