"""httpbin, a Flask app from the package index: as it is, and made ill in five ways."""

import os
import time

from httpbin import app as inner

kept, current, loaded = [], {}, []


def before(work):
    def app(environ, start_response):
        work(environ)
        return inner(environ, start_response)

    return app


class Answer:
    def __init__(self, parts):
        self.parts = parts

    def __iter__(self):
        return iter(self.parts)

    def close(self):
        self.parts.close()
        time.sleep(0.1)  # "mail is sent when the answer is out"


def behind(environ, start_response):
    return Answer(inner(environ, start_response))


def loads(environ):
    if not loaded:
        time.sleep(0.3)
        loaded.append(True)


def mixes(environ, start_response):
    current["id"] = environ.get("HTTP_X_REQUEST_ID", "none")
    time.sleep(0.005)

    def start(status, headers, *more):
        return start_response(status, [*headers, ("X-Request-ID", current["id"])], *more)

    return inner(environ, start)


as_it_is = before(lambda environ: None)
cold = before(loads)
leaks = before(lambda environ: kept.append(os.open(os.devnull, os.O_RDONLY)))
grows = before(lambda environ: kept.append(bytearray(b"x" * 20_000)))
