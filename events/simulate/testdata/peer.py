"""The other side of the simulator's tests: real libzmq peers, and the engines' own msgspec structs.

  peer.py sub ENDPOINT COUNT TOPIC...   prints COUNT live messages, a line each: frames in hex, comma separated
  peer.py dealer ENDPOINT START         prints the replies to one replay request, up to the end marker
  peer.py req ENDPOINT START            prints the first reply that a REQ socket gets
  peer.py structs                       reads "FORM HEX" lines; decodes each payload into the engine's structs, encodes it
                                        again, and prints a JSON line {"ok", "why", "shapes"}
"""

import json
import sys
from typing import Any, Optional

import msgpack
import msgspec
import zmq


def show(frames):
    print(",".join(f.hex() for f in frames), flush=True)


def socket(kind, endpoint):
    s = zmq.Context.instance().socket(kind)
    s.setsockopt(zmq.LINGER, 0)
    s.setsockopt(zmq.RCVTIMEO, 20000)
    s.setsockopt(zmq.RCVHWM, 0)
    s.connect(endpoint)
    return s


def sub(endpoint, count, *topics):
    s = zmq.Context.instance().socket(zmq.SUB)
    s.setsockopt(zmq.RCVTIMEO, 20000)
    s.setsockopt(zmq.RCVHWM, 0)
    s.setsockopt(zmq.HEARTBEAT_IVL, 50)
    s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 1000)
    for t in topics:
        s.setsockopt(zmq.SUBSCRIBE, t.encode())
    s.connect(endpoint)
    for _ in range(int(count)):
        show(s.recv_multipart())


def dealer(endpoint, start):
    s = socket(zmq.DEALER, endpoint)
    s.send_multipart([b"", int(start).to_bytes(8, "big")])
    while True:
        frames = s.recv_multipart()
        show(frames)
        if frames[-1] == b"" and frames[-2] == b"\xff" * 8:
            return


def req(endpoint, start):
    s = socket(zmq.REQ, endpoint)
    s.send(int(start).to_bytes(8, "big"))
    show(s.recv_multipart())


# The structs as the engines declare them (vllm/distributed/kv_events.py, sglang/srt/disaggregation/kv_events.py).
class Batch(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    ts: float
    events: list[Any]
    data_parallel_rank: Optional[int] = None


class MapEvent(msgspec.Struct, omit_defaults=True, gc=False, tag=True):
    pass


class ArrayEvent(msgspec.Struct, array_like=True, omit_defaults=True, gc=False, tag=True):
    pass


Extra = Optional[list[Optional[list[str]]]]


class VStored(MapEvent, tag="BlockStored"):
    block_hashes: list[int | bytes]
    parent_block_hash: Optional[int | bytes]
    token_ids: list[int]
    block_size: int
    lora_id: Optional[int]
    medium: Optional[str]
    lora_name: Optional[str]
    extra_keys: Extra = None
    group_idx: Optional[int] = None
    kv_cache_spec_kind: Optional[str] = None
    kv_cache_spec_sliding_window: Optional[int] = None
    locality: Optional[str] = None
    ownership: Optional[str] = None
    session_id: Optional[str] = None


class VRemoved(MapEvent, tag="BlockRemoved"):
    block_hashes: list[int | bytes]
    medium: Optional[str]
    group_idx: Optional[int] = None
    locality: Optional[str] = None
    ownership: Optional[str] = None


class MapCleared(MapEvent, tag="AllBlocksCleared"):
    pass


class ArrayCleared(ArrayEvent, tag="AllBlocksCleared"):
    pass


class VArrayStored(ArrayEvent, tag="BlockStored"):
    block_hashes: list[int | bytes]
    parent_block_hash: Optional[int | bytes]
    token_ids: list[int]
    block_size: int
    lora_id: Optional[int]
    medium: Optional[str]
    lora_name: Optional[str]
    extra_keys: Extra = None
    group_idx: Optional[int] = None


class VArrayRemoved(ArrayEvent, tag="BlockRemoved"):
    block_hashes: list[int | bytes]
    medium: Optional[str]
    group_idx: Optional[int] = None


class SStored(MapEvent, tag="BlockStored"):
    block_hashes: list[int]
    parent_block_hash: Optional[int]
    token_ids: list[int]
    block_size: int
    lora_id: Optional[int]
    medium: Optional[str] = None
    cache_salt: Optional[str] = None
    session_id: Optional[str] = None
    lora_name: Optional[str] = None


class SRemoved(MapEvent, tag="BlockRemoved"):
    block_hashes: list[int]
    medium: Optional[str] = None


class SArrayStored(ArrayEvent, tag="BlockStored"):
    block_hashes: list[int]
    parent_block_hash: Optional[int]
    token_ids: list[int]
    block_size: int
    lora_id: Optional[int]
    medium: Optional[str] = None


class SArraySalted(SArrayStored, tag="BlockStored"):
    metadata: dict[str, str] = {}


class SArrayRemoved(ArrayEvent, tag="BlockRemoved"):
    block_hashes: list[int]
    medium: Optional[str] = None


class RawBatch(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    ts: float
    events: list[msgspec.Raw]
    data_parallel_rank: Optional[int]


STRUCTS = {
    "vllm": VStored | VRemoved | MapCleared,
    "vllm-array": VArrayStored | VArrayRemoved | ArrayCleared,
    "sglang": SStored | SRemoved | MapCleared,
    "sglang-array": SArrayStored | SArrayRemoved | ArrayCleared,
}


def shape(event):
    if isinstance(event, dict):
        return [event["type"]] + [k for k in event if k != "type"]
    return [event[0], str(len(event))] + (["map"] if isinstance(event[-1], dict) else [])


def check(form, payload):
    kind = STRUCTS["vllm" if form == "vllm-bytes" else form]
    raw = msgspec.msgpack.decode(payload, type=RawBatch)
    events, shapes = [], []
    for r in raw.events:
        plain = msgpack.unpackb(bytes(r))
        shapes.append(shape(plain))
        if form == "sglang-array" and plain[0] == "BlockStored" and len(plain) == 8:
            kind_here = SArraySalted
        else:
            kind_here = kind
        events.append(msgspec.msgpack.decode(bytes(r), type=kind_here))
    again = msgspec.msgpack.encode(Batch(raw.ts, events, raw.data_parallel_rank))
    if again != payload:
        return False, "msgspec encodes " + again.hex(), shapes
    if msgpack.packb(msgpack.unpackb(payload)) != payload:
        return False, "msgpack encodes it otherwise", shapes
    return True, "", shapes


def structs():
    for line in sys.stdin:
        form, payload = line.split()
        try:
            ok, why, shapes = check(form, bytes.fromhex(payload))
        except Exception as e:  # the test shows it
            ok, why, shapes = False, repr(e), []
        print(json.dumps({"ok": ok, "why": why, "shapes": shapes}), flush=True)


if __name__ == "__main__":
    {"sub": sub, "dealer": dealer, "req": req, "structs": structs}[sys.argv[1]](*sys.argv[2:])
