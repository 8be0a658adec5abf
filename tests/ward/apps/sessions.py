"""`client-per-request` over plain HTTP: a session for each request, which opens a connection; cured by one for all.

Of aiohttp on an event loop, of requests in threads of a server.
"""

import os
import threading

import aiohttp
import requests
from answering import answering

URL = os.environ["PAYMENTS_URL"]
CALLS = 3
held = threading.local()
sessions = []


async def fetch(session):
    for _ in range(CALLS):
        async with session.get(URL) as answer:
            await answer.read()


async def each():
    for _ in range(CALLS):
        async with aiohttp.ClientSession() as session, session.get(URL) as answer:
            await answer.read()


async def shared():
    if not sessions:
        sessions.append(aiohttp.ClientSession())
    await fetch(sessions[0])


def in_threads(get):
    def app(environ, start_response):
        for _ in range(CALLS):
            get(URL)
        start_response("200 OK", [("Content-Length", "2"), ("Content-Type", "text/plain")])
        return [b"ok"]

    return app


def get_kept(url):
    if not hasattr(held, "session"):
        held.session = requests.Session()
    return held.session.get(url)


severe, cured = answering(each), answering(shared)
severe_threads, cured_threads = in_threads(requests.get), in_threads(get_kept)
