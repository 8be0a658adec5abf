"""`hash-on-loop`: a password is hashed on the loop for one request of ten; cured by a thread, and computing in Python.

With one CPU nothing hashes faster in a thread: what is better is how long all others take.
"""

import asyncio
import hashlib
from itertools import count

from answering import answering

ROUNDS = 100_000
_numbers = count(1)


def hashed(password):
    return hashlib.pbkdf2_hmac("sha256", password, b"salt", ROUNDS)


def summed(password):
    value = 0
    for number in range(200_000):
        value += number
    return value


async def on_the_loop():
    if next(_numbers) % 10 == 0:
        hashed(b"password")


async def each_time():
    hashed(b"password")


async def in_a_thread():
    if next(_numbers) % 10 == 0:
        await asyncio.to_thread(hashed, b"password")


async def in_python():
    if next(_numbers) % 10 == 0:
        summed(b"password")


async def each_in_a_thread():
    await asyncio.to_thread(hashed, b"password")


severe, cured, decoy = map(answering, (on_the_loop, in_a_thread, in_python))
logins, logins_cured = map(answering, (each_time, each_in_a_thread))
