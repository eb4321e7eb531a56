"""An inference engine as far as its KV events show it: a prefix cache, a PUB socket and a replay ROUTER.

The structs and the publisher follow vLLM (vllm/distributed/kv_events.py, arrays before and maps after #42892) and SGLang
(sglang/srt/disaggregation/kv_events.py, 0.5.23); msgspec and pyzmq are the libraries they use.

Commands come on stdin, one JSON object a line; each gets one JSON line on stdout:

  {"op": "serve", "tokens": [..], "salt": "..", "adapter": ".."}  run one request -> {"cached": n, "seq": s} or {"cached": n, "silent": true}
  {"op": "publish", "events": [..]}         publish a batch of events made by name
  {"op": "clear"}                           reset the prefix cache and publish that
  {"op": "value", "value": ..}              publish any value as the payload of the next number
  {"op": "payload", "data": base64}         publish bytes as the payload of the next number
  {"op": "frames", "frames": [base64, ..]}  send frames as they are, without a number
  {"op": "recorded", "frames": [..]}        send a recorded message as it is and keep it for replay
  {"op": "huge", "bytes": ..}               send a message with a payload of so many zeros, without a number
  {"op": "batch", "ops": [..]}              several of these -> {"results": [..]}

"to" of a numbered command says where the batch goes: "both" (default), "replay" (lost on the way to subscribers), "live"
(never buffered), "none" (lost for good).
"""

import argparse
import base64
import collections
import hashlib
import json
import os
import secrets
import sys
import time
from typing import Any, Optional

import msgspec
import zmq

END = b"\xff" * 8


def structs(array_like: bool, sglang: bool):
    """The event classes of one engine in one form."""

    class KVCacheEvent(msgspec.Struct, array_like=array_like, omit_defaults=True, gc=False, tag=True):
        pass

    if sglang:

        class BlockStored(KVCacheEvent):
            block_hashes: list[int]
            parent_block_hash: Optional[int]
            token_ids: list[int]
            block_size: int
            lora_id: Optional[int] = None
            medium: Optional[str] = None
            cache_salt: Optional[str] = None

        class BlockRemoved(KVCacheEvent):
            block_hashes: list[int]
            medium: Optional[str] = None

    else:

        class BlockStored(KVCacheEvent):
            block_hashes: list[int]
            parent_block_hash: Optional[int]
            token_ids: list[int]
            block_size: int
            lora_id: Optional[int]
            medium: Optional[str]
            lora_name: Optional[str]
            extra_keys: Optional[list[Any]] = None
            group_idx: Optional[int] = None
            kv_cache_spec_kind: Optional[str] = None
            kv_cache_spec_sliding_window: Optional[int] = None

        class BlockRemoved(KVCacheEvent):
            block_hashes: list[int]
            medium: Optional[str]
            group_idx: Optional[int] = None

    class AllBlocksCleared(KVCacheEvent):
        pass

    return BlockStored, BlockRemoved, AllBlocksCleared


class EventBatch(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    ts: float
    events: list[Any]
    data_parallel_rank: Optional[int] = None


class Cache:
    """A prefix cache of full blocks: least recently used first out, the tail of a prompt before its head."""

    def __init__(self, engine, blocks):
        self.engine, self.capacity = engine, blocks
        self.blocks = collections.OrderedDict()  # hash -> None, next to be evicted first
        self.none_hash = secrets.token_bytes(32)  # of this process, as without PYTHONHASHSEED

    def chain(self, tokens, salt, adapter):
        digest = self.none_hash + repr((salt, adapter)).encode()
        size, out = self.engine.block_size, []
        for i in range(0, len(tokens) - size + 1, size):
            digest = hashlib.sha256(digest + repr(tokens[i : i + size]).encode()).digest()
            cut, signed = (digest[:8], True) if self.engine.sglang else (digest[-8:], False)
            out.append(int.from_bytes(cut, "big", signed=signed))
        return out

    def serve(self, tokens, salt, adapter):
        """Runs a request; returns what it took from the cache, in tokens, and the events of the step."""
        size = self.engine.block_size
        chain = self.chain(tokens, salt, adapter)
        held = 0
        while held < len(chain) and chain[held] in self.blocks:
            held += 1
        new = chain[held:]
        events = []
        for h in chain[:held]:  # in use, so not evicted below
            del self.blocks[h]
        while self.blocks and len(self.blocks) + len(chain) > self.capacity:
            gone, _ = self.blocks.popitem(last=False)
            events.append(self.engine.removed([gone]))
        if new:
            events.append(
                self.engine.stored(
                    new, chain[held - 1] if held else None, tokens[held * size : len(chain) * size], salt, adapter, held == 0
                )
            )
        for h in reversed(chain):
            self.blocks[h] = None
        # The last token is always computed.
        return min(held, (len(tokens) - 1) // size) * size, events


class Engine:
    def __init__(self, a):
        self.sglang = a.form == "sglang"
        self.array = a.form == "vllm-array"
        self.block_size, self.rank, self.topic = a.block_size, a.rank, a.topic.encode()
        self.Stored, self.Removed, self.Cleared = structs(self.array, self.sglang)
        self.cache = Cache(self, a.blocks)
        self.seq = a.start
        self.buffer = collections.deque(maxlen=a.buffer)
        self.encoder = msgspec.msgpack.Encoder()
        ctx = zmq.Context()
        self.pub = ctx.socket(zmq.PUB)
        self.pub.set_hwm(100_000)
        # As vLLM: a wildcard or ipc endpoint is bound, any other is dialled. Tests bind to loopback only, with --bind.
        (self.pub.bind if a.bind or "*" in a.pub or "ipc:" in a.pub else self.pub.connect)(a.pub)
        self.router = None
        if a.replay:
            self.router = ctx.socket(zmq.ROUTER)
            self.router.bind(a.replay)

    def stored(self, hashes, parent, tokens, salt=None, adapter=None, root=False):
        if self.sglang:
            return self.Stored(hashes, parent, tokens, self.block_size, None, "GPU", salt)
        extra = None
        if adapter or (salt and root):
            extra = [([adapter] if adapter else []) + ([salt] if salt and root and i == 0 else []) or None for i in range(len(hashes))]
        elif salt:
            extra = [None] * len(hashes)
        return self.Stored(hashes, parent, tokens, self.block_size, None, "GPU", adapter, extra, 0, "full_attention")

    def removed(self, hashes):
        return self.Removed(hashes, "GPU") if self.sglang else self.Removed(hashes, "GPU", 0)

    def named(self, e):
        kind = {"stored": self.Stored, "removed": self.Removed, "cleared": self.Cleared}[e.pop("type")]
        if kind is self.Stored:
            e = {"parent_block_hash": None, "block_size": self.block_size, "lora_id": None, "medium": "GPU"} | e
            if not self.sglang:
                e.setdefault("lora_name", None)
        elif kind is self.Removed:
            e.setdefault("medium", "GPU")
        return kind(**e)

    def batch(self, events):
        return self.encoder.encode(EventBatch(time.time(), events, self.rank))

    def publish(self, payload, to="both"):
        seq, self.seq = self.seq, self.seq + 1
        if to in ("both", "live"):
            self.pub.send_multipart((self.topic, seq.to_bytes(8, "big"), payload))
        if to in ("both", "replay"):
            self.buffer.append((seq, payload))
        return {"seq": seq}

    def replay(self):
        frames = self.router.recv_multipart()
        if len(frames) != 3:  # identity, empty, start; anything else gets no answer
            return
        client, start = frames[0], int.from_bytes(frames[2], "big")
        old = self.array  # the layout without a topic
        for seq, payload in self.buffer:
            if seq >= start:
                self.router.send_multipart([client, b""] + ([] if old else [self.topic]) + [seq.to_bytes(8, "big"), payload])
        self.router.send_multipart([client, b""] + ([] if old else [b""]) + [END, b""])

    def do(self, c):
        op, to = c["op"], c.get("to", "both")
        if op == "serve":
            cached, events = self.cache.serve(c["tokens"], c.get("salt"), c.get("adapter"))
            if not events:  # a step that changed nothing publishes nothing
                return {"cached": cached} | ({"seq": self.seq - 1} if self.seq else {"silent": True})
            return {"cached": cached} | self.publish(self.batch(events), to)
        if op == "clear":
            self.cache.blocks.clear()
            return self.publish(self.batch([self.Cleared()]), to)
        if op == "publish":
            return self.publish(self.batch([self.named(e) for e in c["events"]]), to)
        if op == "value":
            return self.publish(self.encoder.encode(c["value"]), to)
        if op == "payload":
            return self.publish(base64.b64decode(c["data"]), to)
        if op == "frames":
            self.pub.send_multipart([base64.b64decode(f) for f in c["frames"]])
            return {}
        if op == "recorded":  # a message of another engine, kept for replay
            frames = [base64.b64decode(f) for f in c["frames"]]
            self.pub.send_multipart(frames)
            self.buffer.append((int.from_bytes(frames[1][:8], "big"), frames[2]))
            return {}
        if op == "huge":
            self.pub.send_multipart([b"", (0).to_bytes(8, "big"), bytes(c["bytes"])])
            return {}
        if op == "batch":
            return {"results": [self.do(o) for o in c["ops"]]}
        raise ValueError(f"unknown op {op}")

    def run(self):
        poller = zmq.Poller()
        poller.register(sys.stdin.fileno(), zmq.POLLIN)
        if self.router:
            poller.register(self.router, zmq.POLLIN)
        # SGLang's cache is made by a reset, which it publishes as number 0 of each life.
        if self.sglang and self.seq == 0:
            self.publish(self.batch([self.Cleared()]))
        print(json.dumps({"pub": self.pub.getsockopt_string(zmq.LAST_ENDPOINT)}), flush=True)
        pending = bytearray()
        while True:
            ready = dict(poller.poll())
            if self.router in ready:
                self.replay()
            if sys.stdin.fileno() not in ready:
                continue
            data = os.read(sys.stdin.fileno(), 1 << 20)
            if not data:
                return
            pending += data
            while (end := pending.find(b"\n")) >= 0:
                line = bytes(pending[:end])
                del pending[: end + 1]
                print(json.dumps(self.do(json.loads(line))), flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--form", default="vllm", choices=["vllm", "vllm-array", "sglang"])
    p.add_argument("--pub", required=True)
    p.add_argument("--bind", action="store_true")
    p.add_argument("--replay")
    p.add_argument("--topic", default="")
    p.add_argument("--rank", type=int, default=0)
    p.add_argument("--block-size", type=int, default=4)
    p.add_argument("--blocks", type=int, default=4096)
    p.add_argument("--buffer", type=int, default=10_000)
    p.add_argument("--start", type=int, default=0)
    Engine(p.parse_args()).run()


if __name__ == "__main__":
    main()
