"""Answers, and never ends on a signal to stop; leaves a child in a session of its own, as deaf."""

import os
import signal
import time

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
    signal.signal(number, signal.SIG_IGN)
if not os.fork():
    os.setsid()
    time.sleep(600)
    os._exit(0)


def application(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
