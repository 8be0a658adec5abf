"""`locked-database`: writers that do not wait for each other's turn; and cured."""

import asyncio
import os
import sqlite3
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from answering import answering

threads = ThreadPoolExecutor(64)
file = os.path.join(tempfile.mkdtemp(), "shop.sqlite")
with sqlite3.connect(file) as made:
    made.execute("create table if not exists orders (id integer primary key)")


def writing(**options):
    def write():
        connection = sqlite3.connect(file, **options)
        try:
            connection.execute("begin immediate")
            connection.execute("insert into orders default values")
            time.sleep(0.002)
            connection.rollback()
        finally:
            connection.close()

    async def in_a_thread():
        await asyncio.get_running_loop().run_in_executor(threads, write)

    return in_a_thread


severe, cured = answering(writing(timeout=0)), answering(writing(timeout=20))
