"""A real vLLM on CPU with two data-parallel ranks, and an ear of our own on its events."""
import json
import threading
import time

import zmq

from processes import Process, free_ports, http

MODEL = "tiny-qwen3"
MAX_LENGTH = 2048
RANKS = 2
BLOCK = 32  # tokens; vLLM on CPU wants a multiple of 32
BLOCKS = 80  # few, so that blocks are evicted
START_LIMIT = 900  # seconds; a busy machine takes minutes to import vLLM

ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
    "VLLM_SERVER_DEV_MODE": "1",  # for /reset_prefix_cache
}


class Engine:
    """One vLLM. It keeps its ports through a restart, as a pod behind a service does."""

    def __init__(self, program, model_dir, log):
        self.program, self.model_dir, self.log = program, model_dir, log
        self.port = free_ports(1)
        self.events, self.replay = free_ports(RANKS), free_ports(RANKS)  # rank r: + r
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        events = {
            "enable_kv_cache_events": True, "publisher": "zmq", "endpoint": f"tcp://*:{self.events}",
            "replay_endpoint": f"tcp://*:{self.replay}", "topic": f"kv@127.0.0.1@{MODEL}",
        }
        began = time.monotonic()
        self.process = Process([
            self.program, "serve", self.model_dir, "--served-model-name", MODEL, "--load-format", "dummy",
            "--dtype", "float32", "--enforce-eager", "--max-model-len", str(MAX_LENGTH), "--max-num-seqs", "8",
            "--block-size", str(BLOCK), "--num-gpu-blocks-override", str(BLOCKS), "--enable-prefix-caching",
            "--enable-prompt-tokens-details", "--enable-auto-tool-choice", "--tool-call-parser", "hermes",
            "--data-parallel-size", str(RANKS), "--api-server-count", "1", "--host", "127.0.0.1", "--port", str(self.port),
            "--kv-events-config", json.dumps(events),
        ], self.log, ENVIRONMENT)
        self.process.wait_until(lambda: http(f"{self.url}/health", timeout=5)[0] == 200, START_LIMIT, "vLLM's start")
        print(f"vLLM is ready after {time.monotonic() - began:.0f} s", flush=True)

    def kill(self):
        if self.process:
            self.process.kill()

    def run(self, path, body, rank):
        """Runs a request on a rank and returns the answer."""
        status, answer = http(self.url + path, body, {"X-data-parallel-rank": str(rank)})
        if status != 200:
            raise SystemExit(f"vLLM refused a request of {path}: status {status}: {answer[:500]!r}")
        return json.loads(answer)

    def reset(self):
        """Empties the prefix cache. That is published with the next step of each rank, so each gets one to do."""
        status, answer = http(f"{self.url}/reset_prefix_cache", b"")
        if status != 200:
            raise SystemExit(f"vLLM did not reset its cache: status {status}: {answer[:500]!r}")
        body = json.dumps({"model": MODEL, "prompt": [11, 12, 13], "max_tokens": 1}).encode()
        for rank in range(RANKS):
            self.run("/v1/completions", body, rank)


class Ear:
    """Hears the engine's events itself, so that it is not kvscout's word that says how far kvscout must be."""

    def __init__(self, engine):
        self.lock = threading.Lock()  # guards last, heard
        self.last = {}  # the last sequence number of each rank that has published
        self.heard = time.monotonic()
        for rank in range(RANKS):
            # Ends with the process; nobody waits for it.
            threading.Thread(target=self.listen, args=(rank, engine.events + rank), daemon=True).start()

    def listen(self, rank, port):
        socket = zmq.Context.instance().socket(zmq.SUB)
        socket.setsockopt(zmq.RCVHWM, 0)
        socket.setsockopt(zmq.RECONNECT_IVL, 50)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.connect(f"tcp://127.0.0.1:{port}")
        while True:
            _, sequence, _ = socket.recv_multipart()
            with self.lock:
                self.last[rank] = int.from_bytes(sequence, "big")
                self.heard = time.monotonic()

    def forget(self):
        """A new life of the engine counts from 0."""
        with self.lock:
            self.last.clear()

    def now(self):
        """What was last heard of each rank, and how many seconds ago anything was."""
        with self.lock:
            return dict(self.last), time.monotonic() - self.heard
