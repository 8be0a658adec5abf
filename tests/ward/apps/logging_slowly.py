"""`log-blocks`: a record for each request to a handler that waits 10 ms, as over a network; cured by a queue."""

import logging
import time
from contextlib import suppress
from logging.handlers import QueueHandler, QueueListener
from queue import Full, Queue

from answering import answering

WAITS_S = 0.01


class FarAway(logging.Handler):
    def emit(self, record):
        time.sleep(WAITS_S)


class Dropping(QueueHandler):
    """Drops what the handler behind the queue is too slow for: else the queue would grow without end."""

    def enqueue(self, record):
        with suppress(Full):
            self.queue.put_nowait(record)


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
    queue = Queue(1000)
    QueueListener(queue, FarAway()).start()
    return logging_to("cured", Dropping(queue))
