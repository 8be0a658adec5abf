"""`log-blocks`: a record for each request to a handler that waits 10 ms, as over a network; cured by a queue."""

import logging
import time
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue

from answering import answering

WAITS_S = 0.01


class FarAway(logging.Handler):
    def emit(self, record):
        time.sleep(WAITS_S)


def logging_to(name, handler):
    log = logging.getLogger(name)
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(handler)

    async def one_record():
        log.info("a request")

    return answering(one_record)


severe = logging_to("severe", FarAway())


def cured():
    queue = SimpleQueue()
    QueueListener(queue, FarAway()).start()
    return logging_to("cured", QueueHandler(queue))
