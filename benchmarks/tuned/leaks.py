"""Waits a little, and keeps 4 kB of every request for ever."""

import third_party

kept = []


def app(environ, start_response):
    third_party.ask()
    kept.append(bytearray(4_096))
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]
