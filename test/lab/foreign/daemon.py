"""A daemon in Python: grpcio on C-core, messages built from the descriptor set at run time.

Usage: daemon.py ADDRESS TOKEN DESCRIPTOR_SET GROUP STORE. Stores each page of a run as an NDJSON file in STORE until
SIGTERM: then it claims no more runs, finishes its current page and releases its run.
"""

import json
import os
import signal
import sys
import threading
import time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

address, token, descriptor_set_path, group, store = sys.argv[1:6]

pool = descriptor_pool.DescriptorPool()
files = descriptor_pb2.FileDescriptorSet()
with open(descriptor_set_path, "rb") as descriptor_set:
    files.ParseFromString(descriptor_set.read())
for file in files.file:
    pool.Add(file)
factory = message_factory.MessageFactory(pool)
channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", 64 << 20)])
bearer = (("authorization", f"Bearer {token}"),)


def call(method, /, timeout=30, **request):
    """One call; request and response are dicts with the field names of the contract. A stream is an iterator of them."""
    service, name = method.split(".")
    described = pool.FindServiceByName(f"patchbay.v1.{service}").methods_by_name[name]
    output = factory.GetPrototype(described.output_type)
    make = channel.unary_stream if name == "ListPages" else channel.unary_unary
    stub = make(
        f"/patchbay.v1.{service}/{name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=output.FromString,
    )
    message = json_format.ParseDict(request, factory.GetPrototype(described.input_type)())
    plain = lambda answer: json_format.MessageToDict(answer, True, True)  # with defaults, names as in the contract
    if name == "ListPages":
        return map(plain, stub(message, metadata=bearer))
    return plain(stub(message, metadata=bearer, timeout=timeout))


def reason_of(error):
    """The reason in the details of an error."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in factory.GetPrototype(pool.FindMessageTypeByName("google.rpc.Status")).FromString(value).details:
                if detail.type_url.endswith("google.rpc.ErrorInfo"):
                    info = factory.GetPrototype(pool.FindMessageTypeByName("google.rpc.ErrorInfo"))
                    return info.FromString(detail.value).reason
    return error.code().name


registered = call("DaemonService.RegisterDaemon", label=f"python-{os.getpid()}", group_key=group, version="python")
me = registered["daemon_id"]
held = {}  # leases of this process: run id -> lease id
lost = set()  # leases that have expired
draining = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: draining.set())


def heartbeat():
    while True:
        mine = [{"run_id": run_id, "lease_id": lease_id} for run_id, lease_id in list(held.items())]
        try:
            answer = call("DaemonService.Heartbeat", daemon_id=me, held=mine, is_draining=draining.is_set())
            lost.update(each["lease_id"] for each in answer["held"] if each["is_lost"])
        except grpc.RpcError as error:
            print(f"heartbeat: {reason_of(error)}", file=sys.stderr)
        pause = time.sleep if draining.is_set() else draining.wait  # a drain is reported at once, which ends the long poll
        pause(registered["heartbeat_seconds"])


def store_page(run_id, place, number, records):
    """Writes one file per page, atomically; a repeated page replaces it."""
    path = os.path.join(store, f"{run_id}-{place}-{number:06}.ndjson")
    with open(path + ".part", "w") as part:
        part.writelines(json.dumps(record) + "\n" for record in records)
        part.flush()
        os.fsync(part.fileno())
    os.rename(path + ".part", path)


def execute(claimed):
    run, lease_id = claimed["run"], claimed["lease_id"]
    key = {"run_id": run["id"], "lease_id": lease_id}
    stats = [dict(each) for each in run["resource_stats"]]
    given = json.loads(claimed["values_json"])  # as text, because a Struct holds doubles
    at = given["checkpoint"] or {"place": 0, "state": None}
    print(f"run {run['id']} attempt {run['attempt']} from {'its checkpoint' if claimed.get('checkpoint') else 'the start'}")
    for place in range(int(at["place"]), len(run["resources"])):
        resource = run["resources"][place]
        state = at["state"] if place == at["place"] else None
        asked = claimed["resources"][place]
        wanted = {name: asked[name] for name in ("previous_run_date",) if name in asked}
        wanted.update({name: resource[name] for name in ("resource", "method", "id") if resource.get(name)})
        values = {"args": given["args"], "query": given["resources"][place].get("query") or {}}
        values.update({"state": state} if state else {})
        account = run["integrated_account_id"]
        if place == len(stats):
            stats.append({"resource": resource["resource"], "method": resource["method"]})
        count = stats[place]
        wanted.update(values_json=json.dumps(values), as_json_text=True)
        for step in call("ProxyService.ListPages", integrated_account_id=account, **wanted):
            if "waiting" in step:
                continue  # the service retries by itself
            page = step["page"]
            if lease_id in lost:
                return print(f"run {run['id']} has another holder now")
            records = json.loads(page["records_json"])
            store_page(run["id"], place, page["number"], records)
            count["pages"] = count.get("pages", 0) + 1
            for name in ("fetched", "delivered"):
                count[name] = count.get(name, 0) + len(records)
            is_last = not page["state_json"]
            if is_last:
                count.update(complete=page["stop_reason"] not in ("max_pages", "max_records"), stop_reason=page["stop_reason"])
            next_at = {"place": place + 1, "state": None} if is_last else {"place": place, "state": json.loads(page["state_json"])}
            report = call("DaemonService.ReportProgress", **key, checkpoint_json=json.dumps(next_at), resource_stats=stats)
            if report["stop_requested"] or draining.is_set():
                return call("DaemonService.ReleaseRun", **key)
    done = call("DaemonService.CompleteRun", **key)
    print(f"run {run['id']} {done['status']}")


threading.Thread(target=heartbeat, daemon=True).start()
while not draining.is_set():
    try:
        runs = call("DaemonService.ClaimRuns", timeout=30, daemon_id=me, capacity=1, wait_seconds=20)["runs"]
    except grpc.RpcError as error:
        print(f"claim: {reason_of(error)}", file=sys.stderr)
        time.sleep(1)
        continue
    for claimed in runs:
        key = {"run_id": claimed["run"]["id"], "lease_id": claimed["lease_id"]}
        held[key["run_id"]] = key["lease_id"]
        try:
            execute(claimed)
        except grpc.RpcError as error:
            print(f"run {key['run_id']}: {reason_of(error)}", file=sys.stderr)
            if reason_of(error) != "LEASE_LOST":
                failure = {"reason": reason_of(error), "message": error.details()[:8192]}
                call("DaemonService.FailRun", **key, error=failure, retryable=True)
        finally:
            held.pop(key["run_id"], None)
    sys.stdout.flush()
