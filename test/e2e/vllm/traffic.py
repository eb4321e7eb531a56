"""Requests as gateways see them: chats that go on, texts and token ids with common prefixes, repeats, salts."""
import copy
import random

from engine import BLOCK, MODEL

WORDS = (
    "brown jumps мир 🙂 weather paris invoice return 数据 function naïve over model café fox session gateway tensor "
    "tenant policy quick worker index dog engine cache shard rust kernel golang router prefix token latency the "
    "привет refund lazy score block 東京 模型"
).split()
TOOLS = [{"type": "function", "function": {"name": "find", "description": "finds a thing", "parameters": {
    "type": "object", "properties": {"what": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["what"]}}}]


class Traffic:
    """An endless, reproducible stream of requests."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.systems = [self.words(self.random.randint(15, 130)) for _ in range(4)]
        self.texts = [self.words(self.random.randint(40, 160)) for _ in range(4)]
        self.ids = [[self.random.randint(100, 50000) for _ in range(600)] for _ in range(4)]
        self.sent, self.chats, self.runs = [], [], []

    def words(self, count):
        return " ".join(self.random.choice(WORDS) for _ in range(count))

    def next(self):
        """The kind, path and body of the next request."""
        pick = self.random
        if self.sent and pick.random() < 0.2:
            _, path, body = pick.choice(self.sent[-10:])
            return "repeat", path, copy.deepcopy(body)
        kind = pick.choice(["chat", "chat", "text", "ids", "whole blocks", "continued"])
        body = {"model": MODEL, "temperature": 0, "max_tokens": pick.choice([1, 1, 2, 5, 20, 40])}
        path = "/v1/chat/completions" if kind == "chat" else "/v1/completions"
        if kind == "chat":
            self.chat(body)
        elif kind == "text":
            words = pick.choice(self.texts).split()
            body["prompt"] = " ".join(words[: pick.randint(20, len(words))]) + " " + self.words(pick.randint(0, 20))
        else:
            body["prompt"], body["return_token_ids"] = self.tokens(kind), True
        if pick.random() < 0.15:
            body["cache_salt"] = pick.choice(["tenant-a", "tenant-b"])
        return kind, path, body

    def chat(self, body):
        pick = self.random
        if self.chats and pick.random() < 0.6:
            messages = copy.deepcopy(pick.choice(self.chats[-5:]))
        else:
            messages = [{"role": "system", "content": pick.choice(self.systems)}]
        body["messages"] = messages + [{"role": "user", "content": self.words(pick.randint(3, 50))}]
        if pick.random() < 0.3:
            body["tools"] = TOOLS

    def tokens(self, kind):
        pick = self.random
        if kind == "continued" and self.runs:  # output is cached too
            return pick.choice(self.runs[-6:]) + [pick.randint(100, 5000) for _ in range(pick.randint(0, 40))]
        length = BLOCK * pick.randint(1, 14) if kind == "whole blocks" else pick.randint(10, 500)
        return pick.choice(self.ids)[:length]

    def answered(self, kind, path, body, answer):
        """Takes the engine's answer, for later requests to go on from."""
        self.sent.append((kind, path, body))
        choice = answer["choices"][0]
        if "messages" in body:
            content = choice["message"].get("content")
            if content and len(body["messages"]) < 8:
                self.chats.append(body["messages"] + [{"role": "assistant", "content": content}])
        elif choice.get("token_ids") and len(body["prompt"]) < 1000:
            self.runs.append(body["prompt"] + choice["token_ids"])
