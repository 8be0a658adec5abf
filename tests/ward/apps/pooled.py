"""`pool-exhausted`: a connection of the database held while the request waits for something else; and cured."""

import asyncio
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from answering import answering
from sqlalchemy import create_engine, text
from sqlalchemy.pool import QueuePool

WAITS_S = 0.05
threads = ThreadPoolExecutor(200)
file = os.path.join(tempfile.mkdtemp(), "shop.sqlite")


def engine(**pool):
    return create_engine(
        f"sqlite:///{file}", poolclass=QueuePool, connect_args={"check_same_thread": False}, **pool
    )


def holds(pool):
    def work():
        with pool.connect() as connection:
            connection.execute(text("select 1"))
            time.sleep(WAITS_S)

    async def held():
        await asyncio.get_running_loop().run_in_executor(threads, work)

    return held


severe, cured = answering(holds(engine())), answering(holds(engine(pool_size=200)))
