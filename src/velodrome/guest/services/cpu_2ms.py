"""Computes for 2 ms in pure Python and answers. Right: status 200 and 84 bytes of `FILLER`.

The work is constant, so a slower interpreter or a crowded CPU takes longer (see `codegen/steps.py`).
"""

from velodrome.guest.recipe import Body, Cpu, Recipe

recipe = Recipe("cpu-2ms", "computes for 2 ms", (Cpu(2000), Body(84)))
