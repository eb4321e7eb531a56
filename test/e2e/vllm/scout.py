"""kvscout, told nothing of the engine but its URL, and its answers."""
import base64
import json
import os
import time

from engine import MAX_LENGTH, MODEL, RANKS
from processes import Process, call, free_ports, http

WORKER = "w0"
QUIET = 0.15  # seconds without an event, after which an idle engine has published all: its publisher is a thread
REACH = 60  # seconds that kvscout has to reach the engine or to catch up


class Scout:
    """One kvscout server that renders in process."""

    def __init__(self, program, model_dir, work, engine, ear):
        self.program, self.work, self.engine, self.ear = program, work, engine, ear
        self.url = f"http://127.0.0.1:{free_ports(1)}"
        self.renderer = f"model={MODEL},tokenizer={model_dir},profile=vllm,max-model-len={MAX_LENGTH}"
        self.process = None

    def start(self):
        config = os.path.join(self.work, "kvscout.yaml")
        with open(config, "w") as out:
            json.dump({"worker_refresh": "1s", "workers": [{"id": WORKER, "url": self.engine.url}]}, out)
        self.process = Process([
            self.program, "serve", "--listen", self.url.removeprefix("http://"), "--config", config,
            "--render-model", self.renderer, "--log-level", "debug",
        ], os.path.join(self.work, "kvscout.log"))
        stats = f"{self.url}/kvscout.v1.IndexService/GetStats"
        self.process.wait_until(lambda: http(stats, b"{}")[0] == 200, REACH, "kvscout's start")

    def kill(self):
        if self.process:
            self.process.kill()

    def sources(self):
        """The state and last sequence number of each rank."""
        workers = call(self.url, "IndexService/ListWorkers", {}).get("workers", [])
        found = {}
        for source in (s for w in workers for s in w.get("sources", [])):
            fresh = source["freshness"]
            state = fresh["state"].removeprefix("FRESHNESS_STATE_").lower()
            found[source.get("rank", 0)] = (state, int(fresh.get("lastSequence", -1)))
        return found

    def wait_live(self):
        """Waits until every rank is live. Returns the seconds that took."""
        began = time.monotonic()

        def live():
            sources = self.sources()
            return len(sources) == RANKS and all(state == "live" for state, _ in sources.values())

        self.process.wait_until(live, REACH, "every rank live")
        return time.monotonic() - began

    def settle(self):
        """Waits until the engine is quiet and kvscout has applied all that our own ear heard."""

        def settled():
            last, quiet = self.ear.now()
            if quiet < QUIET:
                return False
            sources = self.sources()
            return all(sources.get(rank, ("", -1))[1] == sequence for rank, sequence in last.items())

        self.process.wait_until(settled, REACH, "kvscout has applied what the engine published")

    def score(self, path, body, rank):
        """What kvscout predicts for a request on a rank: prompt tokens, reusable tokens, kind of bound, its reasons."""
        answer = call(self.url, "ScoreService/Score", {
            "model": MODEL, "httpRequest": {"path": path, "body": base64.b64encode(body).decode()}})
        for worker in answer.get("workers", []):
            if worker.get("rank", 0) == rank:
                bound = worker["bound"]
                kind = bound["kind"].removeprefix("BOUND_KIND_").lower()
                reasons = [r.removeprefix("BOUND_REASON_").lower() for r in bound.get("reasons", [])]
                return answer["promptTokens"], worker.get("reusableTokens", 0), kind, reasons
        return answer["promptTokens"], None, "absent", []
