"""Calls a third party over gRPC that takes 200 ms, and answers.

Right: status 200 and 84 bytes of `FILLER` after the third party has answered OK; if it answers anything
else, or nothing, the right answer is status 502.
"""

from velodrome.guest.recipe import Body, Call, Recipe

recipe = Recipe(
    "greeting-200ms", "waits 200 ms on a third party over gRPC", (Call(latency_ms=200, over="grpc"), Body(84))
)
