"""Serves itself on a port of its own once a server has loaded it twice: at import it looks harmless."""

import os
import socket
import time


def application(environ, start_response):
    raise AssertionError("never called")


if "VELODROME_RECIPE" in os.environ:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    time.sleep(600)
