"""`pool-raises`: a pool of redis-py smaller than the requests in flight; and cured by one that waits.

`connection-per-query`: a client of redis-py for each request; and cured by one for all.

The server is a thread of this process that says yes to everything, after 20 ms to a PING.
"""

import asyncio
import threading

import redis.asyncio as redis
from answering import answering

ready = threading.Event()
ports = []


async def say_yes(reader, writer):
    try:
        while True:
            words = []
            for _ in range(int((await reader.readline())[1:])):
                await reader.readline()
                words.append((await reader.readline()).strip().upper())
            if words[0] == b"PING":
                await asyncio.sleep(0.02)
            writer.write(b"+PONG\r\n" if words[0] == b"PING" else b"+OK\r\n")
    except (ValueError, OSError):
        writer.close()


async def serve():
    server = await asyncio.start_server(say_yes, "127.0.0.1", 0)
    ports.append(server.sockets[0].getsockname()[1])
    ready.set()
    await server.serve_forever()


threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
ready.wait()


def pinging(pool):
    clients = []

    async def ping():
        if not clients:
            clients.append(redis.Redis(connection_pool=pool))
        await clients[0].ping()

    return ping


url = f"redis://127.0.0.1:{ports[0]}"
severe = answering(pinging(redis.ConnectionPool.from_url(url, max_connections=8)))
cured = answering(pinging(redis.BlockingConnectionPool.from_url(url, max_connections=8, timeout=20)))


async def set_anew():
    async with redis.Redis.from_url(url) as client:
        await client.set("shop", 1)


def setting():
    clients = []

    async def set_by_one():
        if not clients:
            clients.append(redis.Redis.from_url(url))
        await clients[0].set("shop", 1)

    return set_by_one


anew, kept = answering(set_anew), answering(setting())
