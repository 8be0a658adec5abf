"""`one-grpc-connection`: eight channels to a service that allows 100 calls on a connection; cured, and a decoy.

The service is a thread of this process, with grpclib: gRPC's own server refuses calls at its limit now and then. In the
decoy it is the app's own semaphore that lets 100 calls go at once.
"""

import asyncio
import itertools
import threading

from answering import answering
from grpc import aio
from grpclib.const import Cardinality, Handler
from grpclib.encoding.base import CodecBase
from grpclib.server import Server

TAKES_S, STREAMS, CHANNELS = 0.4, 100, 8
"""100 is what h2 allows, which grpclib is made with."""
started, ports = threading.Event(), []


class Plain(CodecBase):
    __content_subtype__ = "proto"

    def encode(self, message, message_type):
        return message

    def decode(self, data, message_type):
        return data


class Shop:
    async def price(self, stream):
        await stream.recv_message()
        await asyncio.sleep(TAKES_S)
        await stream.send_message(b"price")

    def __mapping__(self):
        return {"/Shop/Price": Handler(self.price, Cardinality.UNARY_UNARY, bytes, bytes)}


async def serve():
    server = Server([Shop()], codec=Plain())
    await server.start("127.0.0.1", 0)
    ports.append(server._server.sockets[0].getsockname()[1])
    started.set()
    await server.wait_closed()


threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
started.wait()


def calling(*options, most=10_000):
    connected = []
    semaphore = asyncio.Semaphore(most)

    async def connect():
        address = f"127.0.0.1:{ports[0]}"
        channels = [aio.insecure_channel(address, options=options) for _ in range(CHANNELS)]
        await asyncio.gather(*(channel.channel_ready() for channel in channels))
        return itertools.cycle([channel.unary_unary("/Shop/Price") for channel in channels])

    async def call():
        if not connected:
            connected.append(asyncio.ensure_future(connect()))
        prices = await connected[0]
        async with semaphore:
            await next(prices)(b"7")

    return answering(call)


OWN = ("grpc.use_local_subchannel_pool", 1)
severe, cured, decoy = calling(), calling(OWN), calling(OWN, most=STREAMS)
