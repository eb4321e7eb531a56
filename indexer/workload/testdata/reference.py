"""Makes expected.json and trace.jsonl: both workloads by their definitions, in the plainest way, and right answers by
brute force. It shares nothing with the Go code. Call it with the path of mooncake_conversation_trace.jsonl.

usage: reference.py TRACE
"""
import hashlib
import json
import math
import os
import struct
import sys

M = (1 << 64) - 1
HERE = os.path.dirname(os.path.abspath(__file__))


class Rng:
    def __init__(self, seed):
        self.s = seed

    def next(self):
        self.s = (self.s + 0x9E3779B97F4A7C15) & M
        z = self.s
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M
        return z ^ (z >> 31)

    def below(self, n):
        return self.next() % n

    def chance(self, p):
        return self.next() % 100 < p


def rotl(x, k):
    return ((x << k) | (x >> (64 - k))) & M


def digest(ops):
    """SHA-256 over each op: holder u16, kind u8, has parent u8, parent u64, n u32, then content and key u64 of each."""
    h = hashlib.sha256()
    for kind, holder, parent, blocks in ops:
        h.update(struct.pack("<HBBQI", holder, kind == "remove", parent is not None, parent or 0, len(blocks)))
        for content, key in blocks:
            h.update(struct.pack("<QQ", content, key))
    return h.hexdigest()


def pinned(target):
    r = Rng(20260901)
    families = []
    forced = False
    for holders, pct in ((1, 50), (8, 35), (64, 15)):
        used = 0
        while used < target * pct // 100:
            if holders == 64 and not forced:
                n, forced = 96, True
            else:
                u = (r.next() >> 11) / 2**53
                n = round(math.exp(math.log(8) + u * (math.log(512) - math.log(8))))
            blocks = []
            for i in range(n):
                c = r.next() | 1
                k = c if i == 0 else (((blocks[-1][1] ^ rotl(c, 17)) * 0x2545F4914F6CDD1D) & M) | 1
                blocks.append((c, k))
            base = r.below(256)
            families.append((blocks, sorted((base + 7 * k) % 256 for k in range(holders))))
            used += n * holders
    scripts = [[] for _ in range(256)]
    for blocks, members in families:
        for holder in members:
            ops, parent = [], None
            for o in range(0, len(blocks), 8):
                ops.append(("store", holder, parent, blocks[o : o + 8]))
                parent = blocks[o : o + 8][-1][1]
            prev, tail = parent, []
            for _ in range(4 + r.next() % 61):
                c = r.next() | 1
                prev = ((((prev ^ rotl(c, 29)) * 0x9E3779B97F4A7C15) + holder) & M) | 1
                tail.append((c, prev))
            for o in range(0, len(tail), 8):
                ops.append(("store", holder, parent, tail[o : o + 8]))
                parent = tail[o : o + 8][-1][1]
            ops += [o for o in ops if r.chance(5)]
            if len(blocks) > 2 and r.chance(20):
                ops.append(("remove", holder, None, [blocks[1 + r.below(len(blocks) - 2)]]))
            scripts[holder] += ops
    stream, at = [], [0] * 256
    live = [h for h in range(256) if scripts[h]]
    while live:
        i = r.below(len(live))
        h = live[i]
        stream.append(scripts[h][at[h]])
        at[h] += 1
        if at[h] == len(scripts[h]):
            live[i] = live[-1]
            live.pop()
    cells = {}
    for holders in (1, 8, 64):
        mine = [f for f in families if len(f[1]) == holders][:2000]
        cells["h%d" % holders] = [[c for c, _ in f[0][: 1 + r.below(len(f[0]))]] for f in mine]
    cells["gate"] = [[c for c, _ in f[0][:78]] for f in families if len(f[1]) == 64 and len(f[0]) >= 78]
    cells["miss"] = [[r.next() | 1 for _ in range(1 + r.below(96))] for _ in range(1000)]
    return families, stream, cells


class Holders:
    """What each holder has: chains of contents, how often each."""

    def __init__(self, counted):
        self.counted = counted
        self.have = {}  # (holder, contents so far) -> copies
        self.chain = {}  # (holder, key) -> contents so far

    def apply(self, op):
        kind, holder, parent, blocks = op
        if kind == "store":
            so_far = hashlib.md5(b"").digest() if parent is None else self.chain[holder, parent]
            for content, key in blocks:
                so_far = hashlib.md5(so_far + struct.pack("<Q", content)).digest()
                self.chain[holder, key] = so_far
                self.have[holder, so_far] = self.have.get((holder, so_far), 0) + 1
            return
        for _, key in blocks:
            place = holder, self.chain[holder, key]
            self.have[place] -= 1
            if not self.counted or self.have[place] == 0:
                del self.have[place]

    def ask(self, query, holders):
        so_far, chain = hashlib.md5(b"").digest(), []
        for content in query:
            so_far = hashlib.md5(so_far + struct.pack("<Q", content)).digest()
            chain.append(so_far)
        depths = []
        for h in range(holders):
            d = 0
            while d < len(chain) and (h, chain[d]) in self.have:
                d += 1
            depths.append(d)
        return depths


def total(answers):
    flat = [d for a in answers for d in a]
    return {"depth_sum": sum(flat), "matched": sum(d > 0 for d in flat)}


def pinned_case(target):
    families, stream, cells = pinned(target)
    out = {"target": target, "families": len(families), "ops": len(stream), "digest": digest(stream)}
    out["stream"] = sum(len(o[3]) for o in stream)
    out["cells"] = {n: {"queries": len(q)} for n, q in cells.items()}
    for name, counted in (("want", False), ("counted", True)):
        holders = Holders(counted)
        for op in stream:
            holders.apply(op)
        out[name + "_resident"] = len(holders.have)
        for n, queries in cells.items():
            out["cells"][n][name] = total([holders.ask(q, 256) for q in queries])
    return out


def mooncake_case(chains, capacity, copies):
    """Each worker's cache is a list of [id, parent, last use]; the oldest of those without children goes."""
    ids = 1 + max(i for c in chains for i in c)
    sm = lambda seed: Rng(seed).next()
    block = lambda i: (sm(i) | 1, sm(i ^ 0xA5A5A5A5A5A5A5A5) | 1)
    workers = [{} for _ in range(16)]
    prefix = lambda w, c: next((n for n, i in enumerate(c) if i not in workers[w]), len(c))
    every = [[i + k * ids for i in c] for k in range(copies) for c in chains]
    ops, before, removed = [], [], 0
    for tick, c in enumerate(every):
        before.append([prefix(w, c) for w in range(16)])
        w = tick % 16
        p = before[-1][w]
        mine = workers[w]
        for n, i in enumerate(c):
            mine[i] = (c[n - 1] if n else None, tick)
        if p < len(c):
            ops.append(("store", w, block(c[p - 1])[1] if p else None, [block(i) for i in c[p:]]))
        gone = []
        while len(mine) > capacity:
            parents = {parent for parent, _ in mine.values()}
            oldest = min((use, i) for i, (_, use) in mine.items() if i not in parents)[1]
            del mine[oldest]
            gone.append(oldest)
        if gone:
            ops.append(("remove", w, None, [block(i) for i in gone]))
            removed += len(gone)
    return {
        "capacity": capacity,
        "copies": copies,
        "digest": digest(ops),
        "queries": hashlib.sha256(b"".join(struct.pack("<Q", block(i)[0]) for c in every for i in c)).hexdigest(),
        "stored": sum(len(o[3]) for o in ops) - removed,
        "removed": removed,
        "resident": sum(len(w) for w in workers),
        "want": total(before),
        "final": total([[prefix(w, c) for w in range(16)] for c in every]),
    }


def main():
    with open(sys.argv[1]) as f:
        lines = [next(f) for _ in range(200)]
    chains = [json.loads(line)["hash_ids"] for line in lines]
    with open(os.path.join(HERE, "trace.jsonl"), "w") as f:
        f.writelines(json.dumps({"hash_ids": c}, separators=(",", ":")) + "\n" for c in chains)
    r = Rng(20260901)
    expected = {
        "rng": [str(r.next()) for _ in range(4)],
        "pinned": [pinned_case(t) for t in (20_000, 100_000)],
        "mooncake": [mooncake_case(chains, c, n) for c, n in ((100_000, 1), (60, 1), (5, 1), (150, 3))],
    }
    with open(os.path.join(HERE, "expected.json"), "w") as f:
        json.dump(expected, f, indent=1)
        f.write("\n")


main()
