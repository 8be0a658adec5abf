"""`client-per-request`: a client made for each request; cured by one for all."""

import os

import httpx
from answering import answering

URL = os.environ["PAYMENTS_URL"]
shared = []


async def with_a_client_each():
    async with httpx.AsyncClient() as client:
        await client.get(URL)


async def with_one_client():
    if not shared:
        shared.append(httpx.AsyncClient())
    await shared[0].get(URL)


severe, cured = map(answering, (with_a_client_each, with_one_client))
