"""`session-held`: a session that is held while a third party is waited for; cured, and what looks like it.

The decoy holds nothing: its own semaphore lets as many requests call as the pool has connections.
"""

import asyncio
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from urllib.parse import urlsplit

from answering import answering
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session
from sqlalchemy.pool import QueuePool

place = urlsplit(os.environ["PAYMENTS_URL"])
threads = ThreadPoolExecutor(200)
file = os.path.join(tempfile.mkdtemp(), "shop.sqlite")
engine = create_engine(
    f"sqlite:///{file}", poolclass=QueuePool, connect_args={"check_same_thread": False}, pool_timeout=20
)
semaphore = asyncio.Semaphore(15)
kept = []


def call():
    connection = kept.pop() if kept else HTTPConnection(place.hostname, place.port)
    connection.request("GET", "/")
    connection.getresponse().read()
    kept.append(connection)


def held():
    with Session(engine) as session:
        session.execute(text("select 1"))
        call()


def given_back():
    with Session(engine) as session:
        session.execute(text("select 1"))
    call()


def with_slow_query():
    with Session(engine) as session:
        session.execute(text("select 1"))
        time.sleep(0.05)
    call()


def in_thread(work):
    async def working():
        await asyncio.get_running_loop().run_in_executor(threads, work)

    return working


async def behind_a_semaphore():
    async with semaphore:
        await in_thread(given_back)()


severe, cured = answering(in_thread(held)), answering(in_thread(given_back))
decoy, slow_query = answering(behind_a_semaphore), answering(in_thread(with_slow_query))
