"""Asks a database through a pool of four connections in each process; the database is a server that takes its time."""

import http.client
import queue

import third_party

POOL = 4
pool = queue.Queue()
for _ in range(POOL):
    pool.put(None)


def query() -> bytes:
    connection = pool.get()
    try:
        for again in (True, False):
            if connection is None:
                url = third_party.URL
                connection = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
            try:
                connection.request("GET", "/")
                return connection.getresponse().read()
            except (http.client.HTTPException, OSError):
                connection.close()
                connection = None
                if not again:
                    raise
        raise AssertionError
    finally:
        pool.put(connection)


def app(environ, start_response):
    query()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]
