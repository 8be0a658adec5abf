"""`serial-awaits`: three calls of a third party one after another; cured, and a chain in which each needs the last."""

import asyncio
import os

from aiohttp import ClientSession, TCPConnector
from answering import answering

URL = os.environ["PAYMENTS_URL"]
sessions = []


async def get(what, after=""):
    if not sessions:
        sessions.append(ClientSession(connector=TCPConnector(limit=2000)))
    async with sessions[0].get(f"{URL}/{what}?{after}") as answer:
        return await answer.text()


async def in_turn():
    price = await get("price")
    stock = await get("stock")
    rating = await get("rating")
    return price, stock, rating


async def in_a_loop():
    found = []
    for what in ("price", "stock", "rating"):
        found.append(await get(what))
    return found


async def at_once():
    return await asyncio.gather(get("price"), get("stock"), get("rating"))


async def each_needs_the_last():
    user = await get("user")
    cart = await get("cart", user[:1])
    rating = await get("rating", cart[:1])
    return user, cart, rating


severe, loop, cured, decoy = map(answering, (in_turn, in_a_loop, at_once, each_needs_the_last))
