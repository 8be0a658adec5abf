"""Answers, and never ends when it is asked to; leaves a child in a session of its own."""

import os
import signal
import time


def application(environ, start_response):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


if not os.fork():
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
    os._exit(0)
