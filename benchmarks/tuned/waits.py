"""Waits on a third party and does little else."""

import third_party


def app(environ, start_response):
    third_party.ask()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]
