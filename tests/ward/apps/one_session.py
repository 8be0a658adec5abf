"""`serial-gather`: four queries of 20 ms gathered over one session; cured by a session each, and a decoy.

In the decoy it is the database that answers one query at a time, whatever the sessions.
"""

import asyncio
import os
import tempfile
import threading
import time

from answering import answering
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

TAKES_S, QUERIES = 0.02, 4
turn = threading.Lock()


def made(waits):
    file = os.path.join(tempfile.mkdtemp(), "shop.sqlite")
    engine = create_async_engine(f"sqlite+aiosqlite:///{file}", pool_size=60, max_overflow=60)

    @event.listens_for(engine.sync_engine, "connect")
    def connected(connection, record):
        connection.create_function("waits", 0, waits)

    return engine


def waits():
    time.sleep(TAKES_S)
    return 1


def waits_in_turn():
    with turn:
        return waits()


engine, narrow = made(waits), made(waits_in_turn)
QUERY = text("select waits()")


async def alone(bind):
    async with AsyncSession(bind) as session:
        return (await session.execute(QUERY)).scalar()


def over_one_session(bind):
    async def gathered():
        async with AsyncSession(bind) as session:
            await session.connection()
            found = await asyncio.gather(*(session.execute(QUERY) for _ in range(QUERIES)))
            return [result.scalar() for result in found]

    return gathered


async def over_several():
    return await asyncio.gather(*(alone(engine) for _ in range(QUERIES)))


severe, cured = answering(over_one_session(engine)), answering(over_several)
decoy = answering(over_one_session(narrow))
