"""Runs a stack's program on an event loop that counts what passes its scheduler; tells when it ends.

python -m velodrome.guest.experiments.counted velodrome.guest.stacks.tornado --app … --port …

The last line on standard error is `{"callbacks": n, "timers": n, "futures": n}`: handles put into the loop's ready
queue, timers set, and futures made through the loop (tasks included). uvloop schedules in C and cannot be counted.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import runpy
import sys
from typing import Any, ClassVar, Dict


class CountingLoop(asyncio.SelectorEventLoop):
    """The standard loop; tasks and futures written in C call these methods too."""

    counts: ClassVar[Dict[str, int]] = {"callbacks": 0, "timers": 0, "futures": 0}

    def call_soon(self, *arguments: Any, **more: Any) -> Any:  # type: ignore[override]
        """Count a callback that runs in the next turn."""
        self.counts["callbacks"] += 1
        return super().call_soon(*arguments, **more)

    def call_soon_threadsafe(self, *arguments: Any, **more: Any) -> Any:  # type: ignore[override]
        """Count a callback that another thread asks for."""
        self.counts["callbacks"] += 1
        return super().call_soon_threadsafe(*arguments, **more)

    def call_at(self, *arguments: Any, **more: Any) -> Any:  # type: ignore[override]
        """Count a timer."""
        self.counts["timers"] += 1
        return super().call_at(*arguments, **more)

    def create_future(self) -> Any:
        """Count a future."""
        self.counts["futures"] += 1
        return super().create_future()

    def create_task(self, *arguments: Any, **more: Any) -> Any:
        """Count a task: it is a future too."""
        self.counts["futures"] += 1
        return super().create_task(*arguments, **more)


class Policy(asyncio.DefaultEventLoopPolicy):
    """Makes counting loops for whoever gets a loop from asyncio."""

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """Return a loop that counts."""
        return CountingLoop()


def main() -> None:
    """Run the module named first with the arguments after it."""
    asyncio.set_event_loop_policy(Policy())
    atexit.register(tell)
    module = sys.argv[1]
    sys.argv[:] = sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def tell() -> None:
    """Print the counts."""
    sys.stderr.write(json.dumps(CountingLoop.counts) + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
