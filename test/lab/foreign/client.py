"""A gRPC client that shares no code with the server: grpcio on C-core, messages built from the descriptor set at run time.

Usage: client.py ADDRESS TOKEN DESCRIPTOR_SET. Prints one line per check; exits with 1 when one fails.
"""

import sys
import uuid

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

address, token, descriptor_set_path = sys.argv[1:4]

pool = descriptor_pool.DescriptorPool()
files = descriptor_pb2.FileDescriptorSet()
with open(descriptor_set_path, "rb") as descriptor_set:
    files.ParseFromString(descriptor_set.read())
for file in files.file:
    pool.Add(file)
factory = message_factory.MessageFactory(pool)


def message_class(name):
    return factory.GetPrototype(pool.FindMessageTypeByName(name))


def call(channel, method, request, metadata=(), timeout=10):
    service, name = method.rsplit("/", 1)
    described = pool.FindServiceByName(service).methods_by_name[name]
    output = factory.GetPrototype(described.output_type)
    message = json_format.ParseDict(request, factory.GetPrototype(described.input_type)())
    stub = channel.unary_unary(
        "/" + method, request_serializer=lambda m: m.SerializeToString(), response_deserializer=output.FromString
    )
    return stub(message, metadata=metadata, timeout=timeout)


def call_error(channel, method, request, metadata=()):
    try:
        call(channel, method, request, metadata)
    except grpc.RpcError as error:
        trailers = {key: value for key, value in error.trailing_metadata() or ()}
        status = message_class("google.rpc.Status").FromString(trailers["grpc-status-details-bin"])
        reasons = []
        for detail in status.details:
            if detail.type_url.endswith("google.rpc.ErrorInfo"):
                reasons.append(message_class("google.rpc.ErrorInfo").FromString(detail.value).reason)
        return error.code(), reasons
    raise AssertionError(f"{method} succeeded")


passed = failed = 0


def promise(text, kept):
    global passed, failed
    passed, failed = (passed + 1, failed) if kept else (passed, failed + 1)
    print(f"{'ok' if kept else 'BROKEN'}: {text}")


bearer = (("authorization", f"Bearer {token}"),)
with grpc.insecure_channel(address) as channel:
    health = call(channel, "grpc.health.v1.Health/Check", {})
    promise("health answers without a token", health.status == 1)

    listing = "patchbay.v1.EnvironmentIntegrationService/ListEnvironmentIntegrations"
    answer = call(channel, listing, {"pageSize": 5}, bearer)
    promise("a list with a token answers", len(answer.environment_integrations) == 0)

    code, reasons = call_error(channel, listing, {})
    promise("no token is UNAUTHENTICATED with its reason", (code, reasons) == (grpc.StatusCode.UNAUTHENTICATED, ["TOKEN_MISSING"]))

    creation = "patchbay.v1.EnvironmentIntegrationService/CreateEnvironmentIntegration"
    code, reasons = call_error(channel, creation, {"integrationId": "not-a-uuid"}, bearer)
    promise("a malformed id is INVALID_ARGUMENT with its reason", (code, reasons) == (grpc.StatusCode.INVALID_ARGUMENT, ["INVALID_FIELD"]))

    code, reasons = call_error(channel, creation, {"integrationId": str(uuid.uuid4())}, bearer)
    promise("an unknown id is NOT_FOUND with its reason", (code, reasons) == (grpc.StatusCode.NOT_FOUND, ["RESOURCE_NOT_FOUND"]))

    call(channel, listing, {}, bearer, timeout=3600)
    promise("a deadline of an hour is accepted", True)

print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
