"""`log-cost`: records of `logging` for each request, written and flushed while it waits; and cured.

Or lines in a file of the app's own, each flushed.
"""

import json
import logging
import os
import tempfile

from answering import answering

_log = logging.getLogger("shop")
_log.setLevel(logging.INFO)
_log.propagate = False
_handler = logging.FileHandler(os.devnull)
_handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(funcName)s %(message)s"))
_log.addHandler(_handler)


async def ten_records():
    for number in range(10):
        _log.info("request %d of %s", number, {"path": "/", "step": number})


async def one_record_in_a_hundred():
    return None


async def one_record():
    _log.info("request %d of %s", 1, {"path": "/", "step": 1})


MOST = 1_000_000
_own = tempfile.TemporaryFile("w")  # noqa: SIM115 - as long as the app


def record(line):
    _own.write(line)
    _own.flush()


async def fifty_lines():
    if _own.tell() > MOST:
        _own.seek(0)
    for number in range(50):
        record(json.dumps({"path": "/", "step": number}) + "\n")


severe, cured = answering(ten_records), answering(one_record_in_a_hundred)
mild = answering(one_record)
of_its_own = answering(fifty_lines)
