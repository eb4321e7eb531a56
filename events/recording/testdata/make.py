"""Makes the data that this package is tested against, without any of its code.

    python3 make.py DIR_OF_JSONL_RECORDINGS

writes beside itself
    sample.jsonl   lines of every kind, taken from the recordings as they are
    sample.json    what those lines say, frames and tokens decoded
    sample.cbor    the same records by the table in doc.go, as a raw CBOR sequence
    counts.json    per recording: records by kind, sums, and a digest of everything that was on a wire
"""

import base64
import collections
import hashlib
import json
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).parent
KINDS = ["header", "source", "message", "request", "note", "replay_request", "replay_reply"]
TEXT_FIELDS = ["model", "adapter", "cache_salt", "extra_key", "lora_id"]
KNOWN = set(TEXT_FIELDS) | {
    "kind", "t", "source", "after", "token_ids", "features", "path", "body", "prompt_tokens", "cached_tokens",
    "host_cached_tokens", "rid",
}


def head(major, n):
    for width, info, form in ((24, None, None), (1 << 8, 24, ">B"), (1 << 16, 25, ">H"), (1 << 32, 26, ">I"), (1 << 64, 27, ">Q")):
        if n < width:
            return bytes([major << 5 | n]) if info is None else bytes([major << 5 | info]) + struct.pack(form, n)
    raise ValueError(n)


def cbor(v):
    """RFC 7049 canonical CBOR of the types that a dump uses."""
    if isinstance(v, bool):
        return b"\xf5" if v else b"\xf4"
    if isinstance(v, int):
        return head(0, v) if v >= 0 else head(1, -1 - v)
    if isinstance(v, bytes):
        return head(2, len(v)) + v
    if isinstance(v, str):
        b = v.encode()
        return head(3, len(b)) + b
    if isinstance(v, list):
        return head(4, len(v)) + b"".join(map(cbor, v))
    pairs = sorted(((cbor(k), cbor(x)) for k, x in v.items()), key=lambda p: (len(p[0]), p[0]))
    return head(5, len(pairs)) + b"".join(k + x for k, x in pairs)


def kept(pairs):
    """A map without its empty and zero fields."""
    return {k: v for k, v in pairs.items() if v not in (None, "", b"", 0, False, [], {})}


def features(f):
    items = [
        {"modality": m, "hash": h, "offset": p["offset"], "length": p["length"]}
        for m, hashes in (f or {}).get("mm_hashes", {}).items()
        for h, p in zip(hashes, f["mm_placeholders"][m], strict=True)
    ]
    return sorted(items, key=lambda i: i["offset"])


def extra(d):
    rest = {k: v for k, v in d.items() if k not in KNOWN and v is not None}
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in rest.items()}


def wire_source(d):
    return kept({
        0: d["engine"], 1: d["version"], 2: d.get("model"), 3: d["block_size"], 7: d.get("speculative") == "eagle",
        8: d.get("eagle"), 9: d.get("reuse_reports"), 10: d.get("hash_format"), 11: d.get("unpublished"),
    })


def wire_request(d):
    w = kept({
        0: d["after"], **{1 + i: d.get(k) for i, k in enumerate(TEXT_FIELDS)}, 6: base64.b64decode(d["token_ids"]),
        7: [kept({0: f["modality"], 1: f["hash"], 2: f["offset"], 3: f["length"]}) for f in features(d.get("features"))],
        8: d.get("path"), 9: (d.get("body") or "").encode(), 10: d["prompt_tokens"], 11: d["cached_tokens"],
        13: d.get("rid"), 14: extra(d),
    })
    if d.get("host_cached_tokens") is not None:
        w[12] = d["host_cached_tokens"]
    return w


def wire(d):
    w = kept({1: d["t"], 2: d.get("source"), 3: [base64.b64decode(f) for f in d.get("frames", [])], 4: d.get("text"), 5: d.get("client")})
    w[0] = KINDS.index(d["kind"])
    if d["kind"] == "source":
        w[6] = wire_source(d)
    if d["kind"] == "request":
        w[7] = wire_request(d)
    return w


def tokens(d):
    b = base64.b64decode(d["token_ids"])
    return list(struct.unpack(f"<{len(b) // 4}i", b))


def expected(d):
    """What a line says, under the names of the Go fields."""
    r = {"Kind": d["kind"], "Time": d["t"], "Source": d.get("source", "")}
    if d["kind"] == "source":
        worker, rank = d["source"].rsplit("/", 1)
        r["Info"] = {
            "Worker": worker, "Rank": int(rank), "Engine": d["engine"], "Version": d["version"], "BlockSize": d["block_size"],
            "SpeculativeEAGLE": d.get("speculative") == "eagle", "PairKeys": d.get("eagle", False),
            "ReuseReports": d.get("reuse_reports", False), "HashFormat": d.get("hash_format", ""), "Unpublished": d.get("unpublished"),
        }
    elif d["kind"] == "request":
        host = d.get("host_cached_tokens")
        r["Request"] = {
            "After": d["after"] or None, "Model": d.get("model") or "", "Adapter": d.get("adapter") or "", "CacheSalt": d.get("cache_salt") or "",
            "ExtraKey": d.get("extra_key") or "", "LoraID": d.get("lora_id") or "", "Tokens": tokens(d),
            "Features": [{k.capitalize(): v for k, v in f.items()} for f in features(d.get("features"))] or None,
            "Path": d.get("path") or "", "Body": base64.b64encode(d["body"].encode()).decode() if d.get("body") else None,
            "PromptTokens": d["prompt_tokens"], "CachedTokens": d["cached_tokens"], "HostCachedTokens": host or 0, "HasHost": host is not None,
            "ID": d.get("rid") or "", "Extra": extra(d) or None,
        }
    elif d["kind"] == "note":
        r["Text"] = d["text"]
    else:
        r["Frames"], r["Client"] = d["frames"], d.get("client", "")
    return r


def digest(lines):
    h = hashlib.sha256()
    for d in lines:
        h.update(f"{d['kind']} {d['t']} {d.get('source', '')}\n".encode())
        parts = [base64.b64decode(f) for f in d.get("frames", [])]
        if d["kind"] == "request":
            parts = [base64.b64decode(d["token_ids"]), (d.get("body") or "").encode()]
            parts += [(d.get(k) or "").encode() for k in TEXT_FIELDS]
        for p in parts:
            h.update(struct.pack("<I", len(p)) + p)
    return h.hexdigest()


PICKS = [  # recording, condition; the shortest line that fits is taken
    ("vllm-0.32-base", lambda d: d["kind"] == "source"),
    ("vllm-0.32-base", lambda d: d["kind"] == "message"),
    ("vllm-0.32-base", lambda d: d["kind"] == "request" and d.get("adapter")),
    ("vllm-0.32-base", lambda d: d["kind"] == "request" and d.get("cache_salt") and d["cached_tokens"] and d["after"]),
    ("vllm-0.32-eagle", lambda d: d["kind"] == "source"),
    ("vllm-0.32-eagle", lambda d: d["kind"] == "request" and not d["after"]),
    ("vllm-0.32-reuse-reports", lambda d: d["kind"] == "source"),
    ("vllm-0.32-dp2-restart", lambda d: d["kind"] == "note"),
    ("vllm-0.32-dp2-restart", lambda d: d["kind"] == "source" and d["source"] == "w0/1"),
    ("vllm-0.32-multimodal", lambda d: d["kind"] == "request" and len(d["features"].get("mm_hashes", {}).get("image", [])) > 1),
    ("vllm-0.20-arrays", lambda d: d["kind"] == "message"),
    ("sglang-0.5.23-unified_rust_p16_eagle", lambda d: d["kind"] == "source"),
    ("sglang-0.5.23-unified_rust_mamba_p1", lambda d: d["kind"] == "source"),
    ("sglang-0.5.23-unified_rust_mamba_p1", lambda d: d["kind"] == "request"),
    ("sglang-0.5.23-unified_rust_p16_ns_dynamo", lambda d: d["kind"] == "source"),
    ("sglang-0.5.23-unified_rust_p16_ns_dynamo", lambda d: d["kind"] == "request" and d.get("extra_key") and d.get("lora_id")),
    ("sglang-0.5.23-hicache_rust_write_back_p16", lambda d: d["kind"] == "request" and d["host_cached_tokens"]),
    ("sglang-0.5.23-hicache_rust_write_back_p16", lambda d: d["kind"] == "request" and d["host_cached_tokens"] == 0),
    ("sglang-0.5.23-replay", lambda d: d["kind"] == "replay_request" and d["client"] == "DEALER"),
    ("sglang-0.5.23-replay", lambda d: d["kind"] == "replay_reply" and d["client"] == "DEALER"),
    ("sglang-0.5.23-replay", lambda d: d["kind"] == "replay_reply" and d["client"] == "REQ"),
]


def main(folder):
    recordings = {p.stem: p.read_text().splitlines() for p in sorted(folder.glob("*.jsonl"))}
    sample = [min((l for l in recordings[name] if fits(json.loads(l))), key=len) for name, fits in PICKS]
    parsed = [json.loads(l) for l in sample]
    (HERE / "sample.jsonl").write_text("\n".join(sample) + "\n")
    (HERE / "sample.json").write_text(json.dumps([expected(d) for d in parsed], ensure_ascii=False) + "\n")
    header = {0: 0, 8: "kvscout recording", 9: 1}
    (HERE / "sample.cbor").write_bytes(b"".join(map(cbor, [header] + [wire(d) for d in parsed])))
    counts = {}
    for name, lines in recordings.items():
        lines = [json.loads(l) for l in lines]
        requests = [d for d in lines if d["kind"] == "request"]
        counts[name] = {
            "kinds": collections.Counter(d["kind"] for d in lines),
            "prompt_tokens": sum(d["prompt_tokens"] for d in requests),
            "cached_tokens": sum(d["cached_tokens"] for d in requests),
            "sha256": digest(lines),
        }
    (HERE / "counts.json").write_text(json.dumps(counts, indent=1) + "\n")


main(pathlib.Path(sys.argv[1]))
