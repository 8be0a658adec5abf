"""Waits 50 ms and answers. Right: status 200, 84 bytes of `FILLER`, never earlier than after 50 ms."""

from velodrome.guest.recipe import Body, Recipe, Sleep

recipe = Recipe("sleep-50ms", "waits 50 ms", (Sleep(50), Body(84)))
