"""`httpx-kept`: a client of httpx that keeps all of its connections; cured by several, each of which has few."""

import os
from itertools import cycle

import httpx
from answering import answering

URL = os.environ["PAYMENTS_URL"]


def calling(count):
    made = []

    async def calls():
        if not made:
            limits = httpx.Limits(max_connections=400, max_keepalive_connections=400)
            made.append(cycle([httpx.AsyncClient(limits=limits, timeout=30) for _ in range(count)]))
        await next(made[0]).get(URL)

    return calls


severe, cured = answering(calling(1)), answering(calling(16))
