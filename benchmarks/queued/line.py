"""An ASGI app that is a queue of known capacity: so many slots, each of which serves one request after the other.

    QUEUE_SLOTS=4 QUEUE_SERVICE_S=0.005 QUEUE_EXPONENTIAL=1 uvicorn line:app

When a request leaves is computed as it comes, by when the slots are free; the response is sent at that moment. So a
timer that is late delays one response and no other, and the service time is exact whatever the machine does.
"""

import asyncio
import heapq
import os
import random
from typing import Any

SLOTS = int(os.environ.get("QUEUE_SLOTS", "1"))
SERVICE_S = float(os.environ.get("QUEUE_SERVICE_S", "0.005"))
EXPONENTIAL = os.environ.get("QUEUE_EXPONENTIAL") == "1"

free = [0.0] * SLOTS
"""When each slot is free, by the loop's clock; the first is free first."""
drawn = random.Random()


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Respond when the request's turn is over."""
    if scope["type"] != "http":
        raise NotImplementedError(scope["type"])
    loop = asyncio.get_running_loop()
    takes = drawn.expovariate(1 / SERVICE_S) if EXPONENTIAL else SERVICE_S
    done = max(free[0], loop.time()) + takes
    heapq.heapreplace(free, done)
    turn = loop.create_future()
    loop.call_at(done, turn.set_result, None)
    await turn
    head = [(b"content-type", b"text/plain"), (b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b"ok"})
