"""`httpx-kept`: a client of httpx that keeps all of its connections; cured by one that keeps few."""

import os

import httpx
from answering import answering

URL = os.environ["PAYMENTS_URL"]


def calling(kept):
    clients = []

    async def calls():
        if not clients:
            limits = httpx.Limits(max_connections=400, max_keepalive_connections=kept)
            clients.append(httpx.AsyncClient(limits=limits, timeout=30))
        await clients[0].get(URL)

    return calls


severe, cured = answering(calling(400)), answering(calling(10))
