"""`dns-per-call`: a connection for each call, and a resolver that takes 20 ms; cured by connections that are kept."""

import _socket
import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from itertools import count
from urllib.parse import urlsplit

from answering import answering

ASKS_S = 0.02
look_up = _socket.getaddrinfo


def slowly(*args):
    time.sleep(ASKS_S)
    return look_up(*args)


_socket.getaddrinfo = slowly
place = urlsplit(os.environ["PAYMENTS_URL"])
threads = ThreadPoolExecutor(8)
kept = []
numbers = count(1)


def call(connection):
    connection = connection or HTTPConnection(place.hostname, place.port)
    connection.request("GET", "/")
    connection.getresponse().read()
    return connection


async def with_a_connection_each():
    connection = await asyncio.get_running_loop().run_in_executor(threads, call, None)
    connection.close()


async def with_connections_kept():
    before = kept.pop() if kept else None
    kept.append(await asyncio.get_running_loop().run_in_executor(threads, call, before))


async def now_and_then_with_its_own():
    await (with_a_connection_each if next(numbers) % 12 == 0 else with_connections_kept)()


severe, mild, cured = map(
    answering, (with_a_connection_each, now_and_then_with_its_own, with_connections_kept)
)
