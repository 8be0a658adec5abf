"""Two faults at once, of those that other apps of the ward have alone: `pairs:tokens_and_growth`."""

from importlib import import_module
from itertools import count

from answering import answering

numbers = count(1)


async def blocks_now_and_then():
    if next(numbers) % 20 == 0:
        import_module("blocking").price(0.03)


async def hashes_now_and_then():
    """Seldom enough that its CPU bounds none of the others, which the hashes of `hashing` alone would."""
    if next(numbers) % 40 == 0:
        import_module("hashing").hashed(b"password")


def of(module, name, *arguments):
    """Return how to make the work of a fault; a module is imported where its fault is there."""

    def made():
        work = getattr(import_module(module), name)
        return work(*arguments) if arguments else work

    return made


def of_a_pool():
    pooled = import_module("pooled")
    return pooled.holds(pooled.engine())


FAULTS = {
    "tokens": of("tokens", "in_anyio"),
    "executor": of("threads", "in_the_executor"),
    "pool": of_a_pool,
    "connector": lambda: import_module("calling").asking(),
    "blocking": lambda: blocks_now_and_then,
    "logging": of("logging_much", "ten_records"),
    "hashing": lambda: hashes_now_and_then,
    "collecting": of("collecting", "reads_rows"),
    "growth": of("keeping", "keeping", []),
    "leak": of("leaking", "opening", True),
}


def __getattr__(name):
    first, word, second = name.partition("_and_")
    if not word:
        raise AttributeError(name)
    works = [FAULTS[fault]() for fault in (first, second)]

    async def both():
        for work in works:
            await work()

    return answering(both)
