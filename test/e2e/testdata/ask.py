"""Scores one prompt over gRPC with grpcio alone: server reflection gives the messages, no code is generated.

Usage: ask.py HOST:PORT MODEL WORKER ID...   prints the answer's JSON.
"""

import struct
import sys

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

address, model, worker, *ids = sys.argv[1:]
with grpc.insecure_channel(address) as channel:
    pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
    method = pool.FindServiceByName("kvscout.v1.ScoreService").FindMethodByName("Score")
    Request = message_factory.GetMessageClass(method.input_type)
    Response = message_factory.GetMessageClass(method.output_type)
    call = channel.unary_unary(
        "/kvscout.v1.ScoreService/Score", request_serializer=Request.SerializeToString, response_deserializer=Response.FromString
    )
    request = Request(model=model, candidates=[worker])
    request.tokens.packed = struct.pack(f"<{len(ids)}i", *map(int, ids))
    print(json_format.MessageToJson(call(request, timeout=60)))
