"""`connection-per-query`: no pool, or one that keeps nothing, and a login of 20 ms as over TLS; cured by a pool."""

import asyncio
import os
import sqlite3
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from answering import answering
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool, QueuePool

LOGIN_S = 0.02
threads = ThreadPoolExecutor(16)
file = os.path.join(tempfile.mkdtemp(), "shop.sqlite")


def connect():
    time.sleep(LOGIN_S)
    return sqlite3.connect(file, check_same_thread=False)


def asking(each=False, **pool):
    engine = create_engine("sqlite://", creator=connect, **pool)

    def query():
        mine = create_engine("sqlite://", creator=connect, **pool) if each else engine
        with mine.connect() as connection:
            connection.execute(text("select 1"))
        if each:
            mine.dispose()

    async def work():
        await asyncio.get_running_loop().run_in_executor(threads, query)

    return answering(work)


severe, cured = asking(poolclass=NullPool), asking(poolclass=QueuePool, pool_size=16)
recycled = asking(poolclass=QueuePool, pool_size=16, pool_recycle=0)
engine_each = asking(each=True, poolclass=QueuePool)
