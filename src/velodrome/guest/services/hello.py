"""Answers at once. Right: status 200 and `FILLER` cut to 84 bytes.

Where the interface writes the head itself, head and body together are 84 bytes on the wire.
"""

from velodrome.guest.recipe import Body, Recipe

recipe = Recipe("hello", "answers at once, 84 bytes", (Body(84, on_wire=True),))
