"""Verifies deliveries with the standard library alone. Reads cases as JSON lines, answers true or false for each."""

import base64
import hashlib
import hmac
import json
import sys
import time

TOLERANCE_SECONDS = 5 * 60


def verify(secret: str, headers: dict, body: bytes) -> bool:
    if abs(time.time() - int(headers["webhook-timestamp"])) > TOLERANCE_SECONDS:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f'{headers["webhook-id"]}.{headers["webhook-timestamp"]}.'.encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected, one) for one in headers["webhook-signature"].split(" "))


for line in sys.stdin:
    case = json.loads(line)
    print(json.dumps(verify(case["secret"], case["headers"], base64.b64decode(case["body"]))))
