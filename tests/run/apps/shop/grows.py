"""Keeps ten megabytes of every request."""

kept = []


def application(environ, start_response):
    kept.append(bytearray(b"x" * 10_000_000))
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
