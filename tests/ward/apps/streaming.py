"""`one-grpc-connection`: eight channels to a service that allows 100 calls on a connection; cured, and a decoy.

The service is a thread of this process. In the decoy it is the app's own semaphore that lets 100 calls go at once.
"""

import asyncio
import itertools
import threading

import grpc
from answering import answering
from grpc import aio

TAKES_S, STREAMS, CHANNELS = 0.4, 100, 8
ready, ports = threading.Event(), []


async def price(request, context):
    await asyncio.sleep(TAKES_S)
    return b"price"


async def serve():
    server = aio.server(options=[("grpc.max_concurrent_streams", STREAMS)])
    handlers = {"Price": grpc.unary_unary_rpc_method_handler(price)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Shop", handlers),))
    ports.append(server.add_insecure_port("127.0.0.1:0"))
    await server.start()
    ready.set()
    await server.wait_for_termination()


threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
ready.wait()


def calling(*options, most=10_000):
    prices = []
    semaphore = asyncio.Semaphore(most)

    async def call():
        if not prices:
            address = f"127.0.0.1:{ports[0]}"
            channels = [aio.insecure_channel(address, options=options) for _ in range(CHANNELS)]
            prices.append(itertools.cycle([one.unary_unary("/Shop/Price") for one in channels]))
        async with semaphore:
            await next(prices[0])(b"7")

    return answering(call)


OWN = ("grpc.use_local_subchannel_pool", 1)
severe, cured, decoy = calling(), calling(OWN), calling(OWN, most=STREAMS)
