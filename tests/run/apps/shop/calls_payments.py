import os
import urllib.request


def application(environ, start_response):
    with urllib.request.urlopen(os.environ["PAYMENTS_URL"] + "/pay") as answer:
        answer.read()
    start_response("200 OK", [("Content-Length", "4")])
    return [b"paid"]
