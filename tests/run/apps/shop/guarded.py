"""Answers whom it knows, by the host that it has; a page reads what its third party answers."""

import json
import os
import urllib.request


def application(environ, start_response):
    status, headers, body = answer(environ)
    start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(body))), *headers])
    return [body]


def answer(environ):
    path = environ["PATH_INFO"]
    if path == "/old":
        return "302 Found", [("Location", "/new?a=b")], b""
    if path == "/plain":
        return "301 Moved Permanently", [("Location", "https://shop.example/plain")], b""
    if path == "/charge":
        with urllib.request.urlopen(os.environ["PAYMENTS_URL"], timeout=5) as answered:
            assert answered.headers["Content-Type"] == "application/json", answered.headers["Content-Type"]
            return "200 OK", [], b"charged %d" % json.load(answered)["amount"]
    if environ["HTTP_HOST"] != "shop.example":
        return "400 Bad Request", [], b"unknown host"
    if environ.get("HTTP_AUTHORIZATION") != "Bearer s3cret":
        return "401 Unauthorized", [], b"who are you"
    return "200 OK", [], b"welcome"
