"""Signals that end velodrome: the first ends what is measured, in order, and what must be done at the end is done.

    with stoppable():                   # Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt
        with undisturbed():             # none of them does
            ...
        with undisturbed(breaks_at=3, on_signal=print):      # the third does
            ...

By handlers, not by a mask: a signal that one thread masks is given to another, and Python acts on it all the same; and
what is started meanwhile would inherit the mask.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BREAKS_AT = 3
"""Interrupt that ends even what cleans up, but for what takes moments."""
CLEANING_S = 5.0
"""After the first interrupt a second does nothing for so long: what ends in order is not to be cut short."""


@dataclass
class _Block:
    """Within which signals only count; from number `breaks_at` on they break it off, if that is set."""

    breaks_at: int | None
    on_signal: Callable[[int], None]


@dataclass
class _Received:
    """Signals that came; only the main thread reads it."""

    count: int = 0
    first: float = 0.0
    raised: bool = False
    """Whether anybody was interrupted yet."""
    blocks: list[_Block] = field(default_factory=list)
    depth: int = 0


_received = _Received()


def interrupts() -> int:
    """Return how many signals that end velodrome have come since the outermost of these blocks began."""
    return _received.count


def _on_signal(_number: int, _frame: FrameType | None) -> None:
    _received.count += 1
    now = time.monotonic()
    if _received.count == 1:
        _received.first = now
    if _received.blocks:
        block = _received.blocks[-1]
        block.on_signal(_received.count)
        if block.breaks_at is None or _received.count < block.breaks_at:
            return
    elif 1 < _received.count < BREAKS_AT and _received.raised and now - _received.first < CLEANING_S:
        return
    _received.raised = True
    raise KeyboardInterrupt


@contextmanager
def stoppable() -> Iterator[None]:
    """Make Ctrl-C, SIGTERM and SIGHUP alike end what is measured: in order, with everything stopped.

    A signal that is ignored stays ignored (`nohup`), and a handler of whoever called us is left alone. Blocks within
    blocks are one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's affair
        return
    if not _received.depth:
        _received.count, _received.raised = 0, False
    before = {int(number): signal.getsignal(number) for number in SIGNALS}
    _received.depth += 1
    try:
        ours = _take()
        yield
    finally:
        _received.depth -= 1
        for number in ours:
            signal.signal(number, before[number])


def stoppable_to_the_end() -> None:
    """Make it so for the rest of this process, which has nothing else to do than what can be stopped."""
    _received.depth += 1
    _take()


def deaf() -> None:
    """Let no signal come between the end of a command that was stopped and that of its process."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _take() -> list[signal.Signals]:
    """Take the signals that nobody else has taken, and return them."""
    free = (signal.SIG_DFL, signal.default_int_handler)
    ours = [number for number in SIGNALS if signal.getsignal(number) in free]
    for number in ours:
        signal.signal(number, _on_signal)
    return ours


@contextmanager
def undisturbed(
    breaks_at: int | None = None, on_signal: Callable[[int], None] = lambda _: None
) -> Iterator[None]:
    """Let signals wait until the block has ended, and then raise KeyboardInterrupt if nothing else did before.

    From number `breaks_at` on, counted from the first of all, they raise it at once. `on_signal` gets each number.
    """
    with stoppable():
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        came = _received.count
        _received.blocks.append(_Block(breaks_at, on_signal))
        try:
            yield
        finally:
            _received.blocks.pop()
        if _received.count > came and not _received.raised:
            _received.raised = True
            raise KeyboardInterrupt
