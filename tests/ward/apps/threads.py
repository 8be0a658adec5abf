"""`default-executor`: calls that wait in the threads of the loop's pool; cured by a pool of the app's own."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from answering import answering

WAITS_S = 0.05


def query():
    time.sleep(WAITS_S)


async def in_the_executor():
    await asyncio.to_thread(query)


own = ThreadPoolExecutor(200)


async def in_an_executor_of_its_own():
    await asyncio.get_running_loop().run_in_executor(own, query)


severe, cured = answering(in_the_executor), answering(in_an_executor_of_its_own)
