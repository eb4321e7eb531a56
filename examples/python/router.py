"""A router's loop over gRPC with generated stubs: ask, choose, tell the choice, and later what the engine made of it.

Make the stubs once, from the folder of the repository:

  pip install grpcio grpcio-tools grpcio-status
  mkdir -p stubs
  python3 -m grpc_tools.protoc -I proto --python_out=stubs --grpc_python_out=stubs proto/kvscout/v1/*.proto

PYTHONPATH=stubs python3 examples/python/router.py 127.0.0.1:9470 MODEL 1 2 3 4
"""

import struct
import sys

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from kvscout.v1 import score_pb2, score_pb2_grpc, types_pb2


def reason(error):
    """Why the server refused a call, such as "UNKNOWN_MODEL"; None if the error is none of the server's own."""
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == "kvscout":
            return info.reason
    return None


def route(stub, model, tokens):
    """Score a prompt and report the best worker as chosen. None: nobody serves the model."""
    # Token ids travel as little-endian int32, which costs the server next to nothing to read.
    packed = types_pb2.Tokens(packed=struct.pack(f"<{len(tokens)}i", *tokens))
    answer = stub.Score(score_pb2.ScoreRequest(model=model, tokens=packed, remember=True), timeout=2)
    for w in answer.workers:
        print(f"{w.worker_id}/{w.rank} score {w.score:.3f}, {w.reusable_tokens} of {answer.prompt_tokens} tokens reusable")
    if not answer.workers:
        return None
    best = answer.workers[0]
    sent = {"worker_id": best.worker_id, "rank": best.rank, "score_id": answer.score_id}
    stub.ReportRouted(score_pb2.ReportRoutedRequest(**sent), timeout=2)
    return sent


def finished(stub, sent, usage):
    """Report the engine's own numbers, as in "usage" of its answer."""
    outcome = stub.ReportOutcome(
        score_pb2.ReportOutcomeRequest(
            **sent, prompt_tokens=usage["prompt_tokens"], cached_tokens=usage["prompt_tokens_details"]["cached_tokens"]
        ),
        timeout=2,
    )
    print(f"predicted {outcome.predicted_tokens}, {outcome.accuracy.equal} of {outcome.accuracy.outcomes} equal")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    ids = [int(t) for t in sys.argv[3:]]
    with grpc.insecure_channel(sys.argv[1]) as channel:
        scout = score_pb2_grpc.ScoreServiceStub(channel)
        try:
            choice = route(scout, sys.argv[2], ids)
            if choice:  # here the request would go to choice["worker_id"], which answers with its usage
                finished(scout, choice, {"prompt_tokens": len(ids), "prompt_tokens_details": {"cached_tokens": 0}})
        except grpc.RpcError as error:
            sys.exit(f"{error.code().name} {reason(error)}: {error.details()}")
