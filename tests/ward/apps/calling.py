"""`connector-limit`: a client of aiohttp with its usual 100 connections to a slow third party; and cured."""

import os

from aiohttp import ClientSession, TCPConnector
from answering import answering


def asking(**connector):
    sessions = []

    async def call():
        if not sessions:
            sessions.append(ClientSession(connector=TCPConnector(**connector)))
        async with sessions[0].get(os.environ["PAYMENTS_URL"]) as answer:
            await answer.read()

    return call


severe, cured = answering(asking()), answering(asking(limit=1000))
