"""Compares what kvscout predicts with what a real vLLM reports, request by request.

Before each request kvscout is asked how many of its tokens the rank that will run it has cached; afterwards vLLM says how
many it had (usage.prompt_tokens_details.cached_tokens). An exact answer must be equal, a bound must hold. The engine and
kvscout are killed and started again on the way. Exits with 1 if an answer was wrong or a phase proved nothing.
"""
import argparse
import collections
import json
import os
import random
import signal
import sys

from engine import RANKS, Ear, Engine
from scout import Scout
from traffic import Traffic

# Phases in which kvscout may lack what it needs for an exact answer.
UNSURE = {"engine just restarted"}


def judge(predicted, kind, cached):
    """How a prediction compares with the engine's word: equal, bound (one that held) or wrong."""
    held = {
        "exact": lambda: predicted == cached, "lower": lambda: predicted <= cached,
        "upper": lambda: predicted >= cached, "estimate": lambda: True,
    }
    if kind not in held or not held[kind]():
        return "wrong"
    return "equal" if kind == "exact" else "bound"


class Run:
    """The phases of a run, and what each came to."""

    def __init__(self, engine, ear, scout, seed):
        self.engine, self.ear, self.scout = engine, ear, scout
        self.random, self.traffic = random.Random(seed), Traffic(seed)
        self.phases = collections.defaultdict(collections.Counter)

    def requests(self, phase, count):
        for _ in range(count):
            self.one(phase, self.random.randrange(RANKS))

    def one(self, phase, rank):
        kind, path, request = self.traffic.next()
        body = json.dumps(request).encode()
        self.scout.settle()
        tokens, predicted, bound, reasons = self.scout.score(path, body, rank)
        answer = self.engine.run(path, body, rank)
        usage = answer["usage"]
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        outcome = judge(predicted, bound, cached) if tokens == usage["prompt_tokens"] else "wrong"
        self.phases[phase].update({"requests": 1, "hits": cached > 0, "cached tokens": cached, outcome: 1,
                                   "equal hits": outcome == "equal" and cached > 0})
        if outcome != "equal":
            print(f"{outcome}: {phase}: {kind} on rank {rank}: kvscout: {tokens} tokens, {predicted} cached, {bound} "
                  f"{reasons}; vLLM: {usage['prompt_tokens']} tokens, {cached} cached", flush=True)
        self.traffic.answered(kind, path, request, answer)

    def unseen(self, count):
        """Requests that kvscout is not asked about, to fill the caches."""
        for _ in range(count):
            kind, path, request = self.traffic.next()
            answer = self.engine.run(path, json.dumps(request).encode(), self.random.randrange(RANKS))
            self.traffic.answered(kind, path, request, answer)

    def play(self, count):
        self.scout.start()  # first: the worker it is told of does not answer yet
        self.engine.start()
        print(f"live after {self.scout.wait_live():.1f} s", flush=True)
        self.requests("first life", count)

        self.scout.kill()
        self.unseen(6)
        self.scout.start()
        print(f"kvscout started again, live after {self.scout.wait_live():.1f} s", flush=True)
        self.requests("kvscout restarted", count // 2)

        self.engine.kill()
        self.ear.forget()
        self.engine.start()
        self.requests("engine just restarted", 4)
        print(f"engine started again, live after {self.scout.wait_live():.1f} s", flush=True)
        self.requests("engine restarted", count)

        self.engine.reset()
        self.requests("cache reset", count // 2)

    def report(self):
        """Prints the table and says whether all is well."""
        columns = ["requests", "hits", "cached tokens", "equal", "bound", "wrong"]
        print("\n" + "phase".ljust(24) + "".join(c.rjust(15) for c in columns))
        total = sum(self.phases.values(), collections.Counter())
        for name, row in [*self.phases.items(), ("all", total)]:
            print(name.ljust(24) + "".join(str(row[c]).rjust(15) for c in columns))
        empty = [n for n, row in self.phases.items() if n not in UNSURE and not row["equal hits"]]
        for name in empty:
            print(f"nothing proved: {name}: no cached prompt was predicted exactly")
        return total["wrong"] == 0 and not empty


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("kvscout", "vllm", "model", "work"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--requests", type=int, default=40, help="in each long phase; short ones have half")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # so that what we started is stopped
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    for log in ("vllm.log", "kvscout.log"):
        open(os.path.join(args.work, log), "w").close()
    engine = Engine(args.vllm, args.model, os.path.join(args.work, "vllm.log"))
    ear = Ear(engine)
    scout = Scout(args.kvscout, args.model, args.work, engine, ear)
    run = Run(engine, ear, scout, args.seed)
    try:
        run.play(args.requests)
    finally:
        engine.kill()
        scout.kill()
    raise SystemExit(0 if run.report() else 1)


if __name__ == "__main__":
    main()
