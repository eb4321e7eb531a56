"""Makes the payloads of this folder and what they decode to.

    python make.py FOLDER [COUNT]

FOLDER holds recordings as JSON lines. Of each recording the first four payloads are taken and, up to COUNT in all
(8), those that show a form of event not seen before in it; with a COUNT of 0 all are taken. NAME.txt gets them as base64, one a line; NAME.json what
they mean, read by Python's msgpack, which knows nothing of our decoder.
"""

import base64
import json
import pathlib
import sys

import msgpack

STORED = ["block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name",
          "extra_keys", "group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window"]
REMOVED = ["block_hashes", "medium", "group_idx"]


def as_map(event):
    if isinstance(event, dict):
        return event
    names = {"BlockStored": STORED, "BlockRemoved": REMOVED, "AllBlocksCleared": []}[event[0]]
    out = {"type": event[0], **dict(zip(names, event[1:]))}
    if isinstance(out.get("lora_name"), dict):
        out.update(out.pop("lora_name"))
    return out


def block_id(value):
    return value.hex() if isinstance(value, bytes) else str(value % 2**64)


def extra(item):
    if isinstance(item, str):
        return ["string", item, 0]
    if isinstance(item, bytes):
        return ["bytes", item.hex(), 0]
    return ["pair", item[0], item[1]]


def meaning(event):
    event = as_map(event)
    out = {"type": event["type"]}
    if event["type"] == "AllBlocksCleared":
        return out
    out["hashes"] = [block_id(h) for h in event["block_hashes"]]
    out["medium"] = event.get("medium") or ""
    if event.get("group_idx") is not None:
        out["group"] = event["group_idx"]
    if event["type"] == "BlockRemoved":
        return out
    tokens = event["token_ids"]
    if tokens and isinstance(tokens[0], list):
        assert all(a[1] == b[0] for a, b in zip(tokens, tokens[1:]))
        out["pairs"] = True
        tokens = [tokens[0][0]] + [pair[1] for pair in tokens]
    out["tokens"] = tokens
    out["block_size"] = event["block_size"]
    if event["parent_block_hash"] is not None:
        out["parent"] = block_id(event["parent_block_hash"])
    for key in ("lora_id", "lora_name", "cache_salt", "kv_cache_spec_kind", "kv_cache_spec_sliding_window"):
        if event.get(key) is not None:
            out[key] = event[key]
    rows = event.get("extra_keys")
    if rows and any(rows):
        out["extras"] = [[extra(item) for item in row or []] for row in rows]
    return out


def form(event):
    """What tells one form of event from another: its keys and the types behind them."""
    def kind(value):
        return type(value).__name__ + (kind(value[0]) if isinstance(value, list) and value else "")
    items = event.items() if isinstance(event, dict) else enumerate(event)
    return tuple((key, value if key in ("type", "medium") else kind(value)) for key, value in items)


def main(folder, count):
    for path in sorted(pathlib.Path(folder).glob("*.jsonl")):
        taken, seen = [], set()
        for line in path.open():
            record = json.loads(line)
            if record["kind"] != "message":
                continue
            payload = base64.b64decode(record["frames"][-1])
            batch = msgpack.unpackb(payload)
            forms = {form(event) for event in batch[1]}
            if count == 0 or len(taken) < min(4, count) or (len(taken) < count and not forms <= seen):
                taken.append((payload, batch))
                seen |= forms
        here = pathlib.Path(__file__).parent
        text = "".join(base64.b64encode(payload).decode() + "\n" for payload, _ in taken)
        (here / (path.stem + ".txt")).write_text(text)
        rows = []
        for _, batch in taken:
            row = {"time": batch[0], "events": [meaning(event) for event in batch[1]]}
            if len(batch) > 2 and batch[2] is not None:
                row["rank"] = batch[2]
            rows.append(json.dumps(row, separators=(",", ":"), ensure_ascii=False))
        (here / (path.stem + ".json")).write_text("[\n" + ",\n".join(rows) + "\n]\n")


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8)
