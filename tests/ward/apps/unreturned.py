"""`connections-leak`: of eight answers of a third party one is not read, and keeps its place in the pool; and cured.

Once the pool of 40 is used up, what the app remembers is sent in the place of what it cannot ask for.
"""

import os
from itertools import count

import httpx
from answering import answering

URL = os.environ["PAYMENTS_URL"]
UNREAD, LIMITS = 8, httpx.Limits(max_connections=40)


def calling(*, closes):
    made, number = [], count(1)

    async def calls():
        if not made:
            made.append(httpx.AsyncClient(limits=LIMITS, timeout=3))
        client = made[0]
        try:
            response = await client.send(client.build_request("GET", URL), stream=True)
        except httpx.PoolTimeout:
            return
        if next(number) % UNREAD:
            await response.aread()
        elif closes:
            await response.aclose()

    return calls


severe, cured = answering(calling(closes=False)), answering(calling(closes=True))
