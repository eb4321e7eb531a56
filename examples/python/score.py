"""Ask a running kvscout which workers hold a prompt. Python's standard library is enough.

python3 examples/python/score.py http://127.0.0.1:9470 MODEL 1 2 3 4
"""

import base64
import json
import struct
import sys
import urllib.error
import urllib.request


def score(server, model, tokens):
    """Return the workers of a ScoreResponse, best first."""
    body = {"model": model, "tokens": {"packed": base64.b64encode(struct.pack(f"<{len(tokens)}i", *tokens)).decode()}}
    request = urllib.request.Request(
        server + "/kvscout.v1.ScoreService/Score",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=2) as response:
        return json.load(response).get("workers", [])


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    try:
        for worker in score(sys.argv[1], sys.argv[2], [int(t) for t in sys.argv[3:]]):
            print(worker["workerId"], worker.get("rank", 0), worker.get("score", 0), worker["bound"]["kind"])
    except urllib.error.HTTPError as error:
        sys.exit(f"{error.code}: {error.read().decode()}")  # a typed error with a reason
    except urllib.error.URLError as error:
        sys.exit(f"{sys.argv[1]}: {error.reason}")
