"""`log-cost`: records of `logging` for each request, written and flushed while it waits; and cured."""

import logging
import os

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


severe, cured = answering(ten_records), answering(one_record_in_a_hundred)
mild = answering(one_record)
