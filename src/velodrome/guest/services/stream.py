"""Answers ten chunks of 1 kB, 20 ms apart. Right: status 200, 10 x 1000 bytes of `FILLER`, 180 ms or later.

The bodies of the chunks are alike; where one ends on the wire is the server's affair.
"""

from velodrome.guest.recipe import Recipe, Stream

recipe = Recipe(
    "stream", "answers ten chunks of 1 kB, 20 ms apart", (Stream(chunks=10, chunk_bytes=1000, every_ms=20),)
)
