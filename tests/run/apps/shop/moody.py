"""Answers every twentieth request with an error of its own, however low the rate; waits where it is set to."""

import itertools
import os
import time

calls = itertools.count(1)
waits_s = float(os.environ.get("SHOP_WAITS_MS", "0")) / 1000


def application(environ, start_response):
    time.sleep(waits_s)
    right = next(calls) % 20 != 0
    start_response("200 OK" if right else "500 Internal Server Error", [("Content-Length", "4")])
    return [b"cart" if right else b"gone"]
