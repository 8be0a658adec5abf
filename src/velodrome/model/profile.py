"""Where a server's time goes under load, from samples of its stacks; never of a measured trial."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from velodrome.model.trial import Trial


@dataclass(frozen=True)
class Profile:
    """What a sampling profiler saw of one contestant under one load."""

    trial: Trial
    """The cell and load it was taken under; nothing of that load is ranked."""
    started_at: str
    """ISO 8601, UTC."""
    profiler: str = ""
    """Name and version."""
    samples: int = 0
    seconds: float = 0.0
    rate_hz: float = 0.0
    errors: int = 0
    """Samples that could not be taken."""
    idle_share: float | None = None
    """Share of samples in which the thread waits for events, 0 to 1."""
    opaque_share: float | None = None
    """The part of `idle_share` in which an event loop written in C (uvloop, gevent's) waits or works: from outside
    these look alike. CPU time tells how much of it was work.
    """
    depth_mean: float | None = None
    """Frames of Python per sample that is not idle."""
    depth_max: int | None = None
    share_by_package: Mapping[str, float] = field(default_factory=dict)
    """Of the samples that are not idle, by the package of the innermost frame outside the standard library's own."""
    share_by_part: Mapping[str, float] = field(default_factory=dict)
    """The same by part of a server: event loop, HTTP, server, framework, handler, driver (`model/parts.py`)."""
    python: str = ""
    """Version of the server's interpreter."""
    achieved_rps: float | None = None
    """Right answers per second while it was taken."""
    server_cpu_s: float | None = None
    """Of the server while it was loaded, sampled or not, in `load_s`."""
    load_s: float | None = None
    collapsed: str = ""
    """File of collapsed stacks, relative to the results."""
    speedscope: str = ""
    """File for speedscope, relative to the results."""
    notes: tuple[str, ...] = ()
    """What to know when reading it, as sentences."""
    failed: str = ""
    """Why there is none, with the cure, or empty."""
