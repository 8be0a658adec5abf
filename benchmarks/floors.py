"""The floors and the plainest target, from `benchmarks/floors` (Rust): what the kernel alone costs a generator.

with Plain() as target:
    done = drive(floor("epoll").command(Shot(target.url, 50, 1.0, answer_bytes=target.answer_bytes)))
"""

import json
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from generators import Generator, Report, Shot
from track import Target, built

ABOUT = {
    "epoll": "floor: epoll",
    "uring": "floor: io_uring",
    "fresh": "floor: epoll, connecting",
    "discard": "floor: epoll, bodies dropped",
    "arrivals": "floor: epoll_pwait2",
}
"""How tables name each: it reads no answer and records nothing."""


@cache
def program() -> Path:
    """Build the floors once and return their path. Raises RuntimeError."""
    return built("velodrome-floors", "--bin", "velodrome-floors")


class Plain(Target):
    """One epoll thread that reads nothing but where requests end; counts them itself.

    manner: "close" after each answer, or ("work", "10"): so many microseconds for each.
    """

    def __init__(self, body_bytes: int = 44, *manner: str) -> None:
        self.start([str(program()), "target", str(body_bytes), *manner], pipes=True)
        port, on_wire = self.told().split()
        self.url = f"http://127.0.0.1:{port}/"
        self.answer_bytes = int(on_wire)
        self.body = bytes(ord("a") + at % 23 for at in range(body_bytes))
        """The right body."""

    def requests(self) -> int:
        return int(self.ask("").split()[0])

    def connections(self) -> int:
        """Return how many connections it has accepted."""
        return int(self.ask("").split()[1])


def floor(kind: str, *more: str) -> Generator:
    """A client that does nothing but send, receive and count bytes; see `benchmarks/floors/src/main.rs`."""

    def command(shot: Shot) -> list[str]:
        place = urlsplit(shot.url).netloc
        words = [place, str(shot.connections), f"{shot.duration_s:g}", str(shot.answer_bytes)]
        rate = [f"{shot.rate:g}"] if shot.rate is not None else []
        return [str(program()), kind, *words, *rate, *more]

    batched = f", {more[0]} µs batches" if more else ""
    return Generator(f"{ABOUT[kind]}{batched}", command, _read)


def _read(text: str) -> Report:
    return Report(int(json.loads(text)["requests"]), 0)
