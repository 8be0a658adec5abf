"""Asks a third party, computes for about a millisecond, answers 20 kB."""

import third_party

BODY = b"<h1>Hello, World!</h1>" * 1_000
ROUNDS = 12_000


def app(environ, start_response):
    third_party.ask()
    total = 0
    for number in range(ROUNDS):
        total += number & 7
    start_response("200 OK", [("Content-Type", "text/html"), ("Content-Length", str(len(BODY)))])
    return [BODY]
