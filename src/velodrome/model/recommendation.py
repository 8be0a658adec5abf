"""Which setting to deploy, and everything that belongs to the answer (`track/tuning.py` finds it)."""

from dataclasses import dataclass

from velodrome.model.limits import Limits
from velodrome.model.measurement import Measurement
from velodrome.model.tuning import Tuned


@dataclass(frozen=True)
class Growth:
    """Memory that rose while the recommended setting was loaded."""

    bytes_per_request: float
    at_rps: float
    seconds_to_limit: float | None
    """At that rate until the limit is reached; None: there is no limit."""
    requests_to_restart: int
    """After so many requests a worker is better replaced."""
    bytes_to_restart: int
    """The memory it has then."""


@dataclass(frozen=True)
class Reason:
    """Something that would change the recommendation."""

    what: str
    """`wait` or `rate`."""
    at: float
    instead: str
    """Label of what would be better then; empty: nothing that was tried."""
    sentence: str


@dataclass(frozen=True)
class Recommendation:
    """The setting to deploy."""

    of: str
    """What was served."""
    conditions: tuple[str, ...]
    rate: float
    """To be carried; 0: as much as can be."""
    limits: Limits
    tuned: Tuned
    title: str
    """What the recommended one is called: `gunicorn · gthread ×2, 16 threads`; empty: there is none."""
    runner_up: str
    proof: Measurement | None
    """The recommended setting under a longer load, at its rate or at a good part of what it can do."""
    growth: Growth | None
    """Of its memory; None: it did not rise."""
    mind: tuple[Reason, ...]
    before: str
    """Lines to paste before the command: packages to install, a file to write, what it needs; empty: none."""
    command: str
    """To paste, with the user's own app; empty: a stack has no command line of its own."""
    python: str
    """Interpreter of the app."""
    cwd: str
    """Folder it runs in."""
    grid_trials: int
    """Loads that measuring the whole grid would have taken, about."""
    seconds: float
    variables: tuple[str, ...] = ()
    """Names of the environment variables that the app was given."""
