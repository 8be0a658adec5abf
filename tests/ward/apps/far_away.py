"""`urllib3-pool`: twenty threads, ten connections kept to a third party whose handshakes take 50 ms; and cured."""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor

import requests
from answering import answering
from requests.adapters import HTTPAdapter
from urllib3.util import connection

HANDSHAKE_S = 0.05
URL = os.environ["PAYMENTS_URL"]
threads = ThreadPoolExecutor(20)
connect = connection.create_connection


def from_far_away(*args, **named):
    time.sleep(HANDSHAKE_S)
    return connect(*args, **named)


connection.create_connection = from_far_away


def calling(**kept):
    session = requests.Session()
    if kept:
        session.mount("http://", HTTPAdapter(**kept))

    async def call():
        await asyncio.get_running_loop().run_in_executor(threads, session.get, URL)

    return answering(call)


severe, cured = calling(), calling(pool_maxsize=50)
