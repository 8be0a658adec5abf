"""Calls a third party that takes 200 ms, and answers.

Right: status 200 and 84 bytes of `FILLER` after the third party has answered 200; if it answers
anything else, or nothing, the right answer is status 502.
"""

from velodrome.guest.recipe import Body, Call, Recipe

recipe = Recipe("third-party-200ms", "waits 200 ms on a third party", (Call(latency_ms=200), Body(84)))
