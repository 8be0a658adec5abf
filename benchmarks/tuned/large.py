"""Answers 220 kB at once."""

BODY = b"<h1>Hello, World!</h1>" * 10_000


def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/html"), ("Content-Length", str(len(BODY)))])
    return [BODY]
