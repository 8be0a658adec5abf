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
    idle_share: float | None = None
    """Share of samples in which the thread waits for events, 0 to 1."""
    depth_mean: float | None = None
    """Frames of Python per sample that is not idle."""
    depth_max: int | None = None
    share_by_package: Mapping[str, float] = field(default_factory=dict)
    """Of the samples that are not idle, by the package of the innermost frame outside the standard library's own."""
    achieved_rps: float | None = None
    """Right answers per second while it was taken."""
    server_cpu_s: float | None = None
    collapsed: str = ""
    """File of collapsed stacks, relative to the results."""
    speedscope: str = ""
    """File for speedscope, relative to the results."""
    failed: str = ""
    """Why there is none, with the cure, or empty."""
