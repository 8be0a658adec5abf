"""Asks one service, then two others, Redis and PostgreSQL at once, then writes to PostgreSQL: 25 ms + 50 ms.

Right: status 200 and 84 bytes of `FILLER`, after all three services have answered 200 (else status 502), one
row was read from each database and one was changed (else status 500).
"""

from velodrome.guest.recipe import Body, Call, Query, Recipe, Together, Write

recipe = Recipe(
    "gather-and-write",
    "calls a service, gathers from two more, Redis and PostgreSQL at once, and writes, 75 ms in all",
    (
        Call(latency_ms=25),
        Together(
            (
                Call(latency_ms=50),
                Call(latency_ms=50),
                Query(database="redis"),
                Query(database="postgresql"),
            )
        ),
        Write(database="postgresql"),
        Body(84),
    ),
)
