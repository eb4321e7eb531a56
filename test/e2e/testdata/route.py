"""A router's calls over gRPC with grpcio alone: server reflection gives the messages, no code is generated.

Usage: route.py HOST:PORT MODEL WORKER ID...   prints one JSON object: the answer of each method by its name.
"""

import json
import sys

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

address, model, worker, *ids = sys.argv[1:]
prompt = {"ids": [int(i) for i in ids]}


class Client:
    """Calls methods of both services with JSON objects."""

    def __init__(self, channel):
        self.channel = channel
        self.pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(channel))

    def method(self, name):
        service = "kvscout.v1." + ("IndexService" if name in ("Dump", "Clear") else "ScoreService")
        found = self.pool.FindServiceByName(service).FindMethodByName(name)
        request = message_factory.GetMessageClass(found.input_type)
        response = message_factory.GetMessageClass(found.output_type)
        codec = {"request_serializer": request.SerializeToString, "response_deserializer": response.FromString}
        return f"/{service}/{name}", codec, lambda body: json_format.ParseDict(body, request())

    def unary(self, name, body):
        path, codec, message = self.method(name)
        return json_format.MessageToDict(self.channel.unary_unary(path, **codec)(message(body), timeout=60))

    def server_stream(self, name, body):
        path, codec, message = self.method(name)
        return [json_format.MessageToDict(m) for m in self.channel.unary_stream(path, **codec)(message(body), timeout=60)]

    def both_streams(self, name, bodies):
        path, codec, message = self.method(name)
        call = self.channel.stream_stream(path, **codec)((message(b) for b in bodies), timeout=60)
        return [json_format.MessageToDict(m) for m in call]


with grpc.insecure_channel(address) as channel:
    client = Client(channel)
    score = {"model": model, "tokens": prompt}
    out = {}
    out["ScoreBatch"] = client.unary("ScoreBatch", {"requests": [{**score, "id": "a", "remember": True}, {"id": "b"}]})
    out["ScoreStream"] = client.both_streams("ScoreStream", [{"request": {**score, "id": str(i)}} for i in range(200)])
    score_id = out["ScoreBatch"]["results"][0]["response"]["scoreId"]
    sent = {"workerId": worker, "scoreId": score_id}
    out["ReportRouted"] = client.unary("ReportRouted", {**sent, "ttl": "60s"})
    out["ReportOutcome"] = client.unary("ReportOutcome", {**sent, "promptTokens": len(ids), "cachedTokens": 8})
    out["Dump"] = client.server_stream("Dump", {})
    out["Clear"] = client.unary("Clear", {"worker": {"workerId": worker}})
    try:
        client.unary("ReportOutcome", {**sent, "promptTokens": len(ids)})
        out["error"] = "none"
    except grpc.RpcError as e:
        out["error"] = e.code().name
    print(json.dumps(out))
