"""Answers 220 kB at once. Right: status 200 and `FILLER` 10,000 times, 220,000 bytes."""

from velodrome.guest.recipe import FILLER, Body, Recipe

recipe = Recipe("large", "answers 220 kB at once", (Body(len(FILLER) * 10_000),))
