"""`connections-leak`: some answers of a third party are not read, and keep their places in the pool; and cured.

One of eight; once the pool of 40 is used up, what the app remembers is sent in the place of what it cannot ask for. Or
all of them; then nothing is answered any more.
"""

import os
from itertools import count

import httpx
from answering import answering

URL = os.environ["PAYMENTS_URL"]
LIMITS = httpx.Limits(max_connections=40)


def calling(unread, timeout_s, *, closes):
    made, number = [], count(1)

    async def calls():
        if not made:
            made.append(httpx.AsyncClient(limits=LIMITS, timeout=timeout_s))
        client = made[0]
        try:
            response = await client.send(client.build_request("GET", URL), stream=True)
        except httpx.PoolTimeout:
            return
        if next(number) % unread:
            await response.aread()
        elif closes:
            await response.aclose()

    return calls


severe, cured = answering(calling(8, 3, closes=False)), answering(calling(8, 3, closes=True))
at_once = answering(calling(1, 60, closes=False))
