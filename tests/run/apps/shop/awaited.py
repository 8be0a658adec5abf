"""Factories that have to be awaited, and what comes of them."""

import asyncio

from plain import application, asgi, rsgi


async def create_asgi(name="shop"):
    await asyncio.sleep(0)
    return asgi


async def create_wsgi():
    return application


async def create_rsgi():
    return rsgi


def takes_anything(*given):
    return asgi(*given) if len(given) == 3 else application(*given)


async def create_anything():
    return takes_anything


async def create_nothing():
    return None


async def fails():
    raise ValueError("no such shop")


def create_loose():
    return takes_anything
