"""`client-per-request`: a client made for each request; cured by one for all."""

import os
from itertools import count

import httpx
from answering import answering

URL = os.environ["PAYMENTS_URL"]
shared = []
numbers = count(1)


async def with_a_client_each():
    async with httpx.AsyncClient() as client:
        await client.get(URL)


async def with_one_client():
    if not shared:
        shared.append(httpx.AsyncClient())
    await shared[0].get(URL)


async def now_and_then_with_its_own():
    await (with_a_client_each if next(numbers) % 30 == 0 else with_one_client)()


severe, mild, cured = map(answering, (with_a_client_each, now_and_then_with_its_own, with_one_client))
