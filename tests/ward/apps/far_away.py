"""`urllib3-pool`: twenty calls at once for each request, and ten connections kept to a third party far away; and cured.

Where calls follow each other without a pause no connection lies idle, and none is thrown away. Here each request lets
twenty go at once, of which ten then need a handshake, which takes 50 ms.
"""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor

import urllib3
from answering import answering
from urllib3.util import connection

HANDSHAKE_S, CALLS = 0.05, 20
URL = os.environ["PAYMENTS_URL"]
threads = ThreadPoolExecutor(200)
connect = connection.create_connection


def from_far_away(*args, **named):
    time.sleep(HANDSHAKE_S)
    return connect(*args, **named)


connection.create_connection = from_far_away


def calling(kept):
    pools = urllib3.PoolManager(maxsize=kept)

    def call():
        return pools.request("GET", URL).data

    async def calls():
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(threads, call) for _ in range(CALLS)))

    return answering(calls)


severe, cured = calling(10), calling(200)
