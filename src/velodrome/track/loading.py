"""One load in several blocks, one after the other, on a server that runs already.

    loaded = load(Target("http://127.0.0.1:8000/"), Terms(rate=200))

Several blocks, because one span alone cannot tell how sure its figures are.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from velodrome.judge.loaded import Blocks
from velodrome.model.errors import NothingAnsweredError, UsageError
from velodrome.model.load import Closed, Load, Open
from velodrome.run.drivers.driver import Driver, LoadEvent, Target
from velodrome.run.drivers.velodrome import VelodromeDriver

BLOCKS = 5
LEAST_S = 0.2
"""Of a block."""
SETTLE_S = 0.1
"""Warm-up of the blocks after the first: connections are opened anew."""
OPEN_CONNECTIONS, CLOSED_CONNECTIONS = 1000, 50


@dataclass(frozen=True)
class Terms:
    """How a server is loaded: plain data."""

    rate: float | None = None
    """Requests a second, whatever the server does; None: a closed loop."""
    connections: int | None = None
    """At most, in an open loop 1000 and in a closed one 50 unless told."""
    seconds: float = 10.0
    """Of all blocks together."""
    warmup_s: float = 1.0
    timeout_s: float = 10.0
    blocks: int = BLOCKS

    @property
    def load(self) -> Load:
        """The load of one block. Raises UsageError for what makes no sense."""
        if self.rate is not None and not self.rate > 0:
            raise UsageError(f"rate={self.rate:g} is not a rate; give requests a second above 0")
        if self.connections is not None and self.connections < 1:
            raise UsageError(f"connections={self.connections}: at least 1 is needed")
        if self.blocks < 1 or self.seconds / self.blocks < LEAST_S:
            least = max(self.blocks, 1) * LEAST_S
            raise UsageError(
                f"{self.seconds:g} s are too few for {self.blocks} blocks; load for {least:g} s at least"
            )
        pace: Open | Closed
        if self.rate is None:
            pace = Closed(self.connections or CLOSED_CONNECTIONS)
        else:
            pace = Open(self.rate, connections=self.connections or OPEN_CONNECTIONS)
        return Load(pace, self.seconds / self.blocks, self.warmup_s, timeout_s=self.timeout_s)


def load(
    target: Target,
    terms: Terms,
    driver: Callable[[int], Driver] = lambda seed: VelodromeDriver(seed=seed),
) -> Blocks:
    """Load a server and return all blocks. `driver` makes the generator, given a seed.

    Raises NothingAnsweredError when no request was answered right, LoadRefusedError for a target that is not this
    machine, UsageError, DriverError.
    """
    each = terms.load
    found = []
    for block in range(terms.blocks):
        again = each if block == 0 else replace(each, warmup_s=min(each.warmup_s, SETTLE_S))
        facts = driver(block + 1).run(again, target, _go_on)
        if block == 0 and not facts.ok:
            raise NothingAnsweredError(target.url, facts.examples[0] if facts.examples else "")
        found.append(facts)
    return Blocks(each, tuple(found))


def _go_on(_event: LoadEvent) -> bool:
    return True
