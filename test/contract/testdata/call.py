"""Calls any method over gRPC with grpcio alone: server reflection tells the services and their messages.

Usage: call.py HOST:PORT

First it prints a line with the full names of all methods. Then it reads one JSON object a line and answers with one:

  {"method": "pkg.Service.Method", "take": 0, "requests": [base64, ..]}
  -> {"answers": [base64, ..], "code": "invalid_argument", "details": [{"type": "google.rpc.ErrorInfo", "value": base64}, ..]}
"""

import base64
import json
import sys

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_status import rpc_status


def reflection():
    """Reflection tells nothing of itself: grpcio brings v1alpha, of which v1 is a copy."""
    alpha = reflection_pb2.DESCRIPTOR
    file = descriptor_pb2.FileDescriptorProto()
    alpha.CopyToProto(file)
    text = json_format.MessageToJson(file).replace("v1alpha", "v1")
    v1 = descriptor_pool.DescriptorPool().Add(json_format.Parse(text, descriptor_pb2.FileDescriptorProto()))
    return [alpha.services_by_name["ServerReflection"], v1.services_by_name["ServerReflection"]]


def methods(database, pool):
    """All methods of all services, by full name."""
    services = [pool.FindServiceByName(name) for name in database.get_services()] + reflection()
    return {m.full_name: m for s in services for m in s.methods}


def call(channel, method, take, requests):
    request = message_factory.GetMessageClass(method.input_type)
    response = message_factory.GetMessageClass(method.output_type)
    path = f"/{method.containing_service.full_name}/{method.name}"
    codec = {"request_serializer": request.SerializeToString, "response_deserializer": response.FromString}
    messages = [request.FromString(base64.b64decode(r)) for r in requests]
    kind = ("stream" if method.client_streaming else "unary") + "_" + ("stream" if method.server_streaming else "unary")
    given = iter(messages) if method.client_streaming else messages[0]
    out = {"answers": [], "code": "", "details": []}
    try:
        got = getattr(channel, kind)(path, **codec)(given, timeout=60)
        for m in got if method.server_streaming else [got]:
            out["answers"].append(base64.b64encode(m.SerializeToString()).decode())
            if len(out["answers"]) == take:
                got.cancel()
                break
    except grpc.RpcError as e:
        out["code"] = e.code().name.lower()
        status = rpc_status.from_call(e)
        for d in status.details if status else ():
            out["details"].append({"type": d.type_url.split("/")[-1], "value": base64.b64encode(d.value).decode()})
    return out


with grpc.insecure_channel(sys.argv[1]) as channel:
    database = ProtoReflectionDescriptorDatabase(channel)
    known = methods(database, descriptor_pool.DescriptorPool(database))
    print(json.dumps(sorted(known)), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(call(channel, known[order["method"]], order["take"], order["requests"])), flush=True)
