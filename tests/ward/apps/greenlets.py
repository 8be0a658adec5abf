"""`driver-not-green`: a wait that gevent has not patched, as in a driver in C; cured by one that it has."""

import ctypes
import time

WAITS_S = 0.01
libc = ctypes.CDLL(None)


def waits_in_c(seconds):
    libc.usleep(int(1e6 * seconds))


def query(wait):
    wait(WAITS_S)


def answering(wait):
    def app(environ, start_response):
        query(wait)
        start_response("200 OK", [("Content-Length", "5")])
        return [b"hello"]

    return app


severe, cured = answering(waits_in_c), answering(time.sleep)
