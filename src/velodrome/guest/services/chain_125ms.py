"""Calls one third party, then three others at once: 50 ms + 75 ms.

Right: status 200 and 84 bytes of `FILLER`, after all four have answered 200, else status 502.
"""

from velodrome.guest.recipe import Body, Call, Recipe

recipe = Recipe(
    "chain-125ms",
    "calls a third party, then three at once, 125 ms in all",
    (Call(latency_ms=50), Call(latency_ms=75, times=3, parallel=True), Body(84)),
)
