"""A table of figures as it was published, and beside each what was measured here."""

from dataclasses import dataclass

from velodrome.model.interval import Interval


@dataclass(frozen=True)
class PublishedRow:
    """One system of a published table."""

    of: str
    """The cell that is the same system here: `question/contestant`."""
    published: tuple[float | str | None, ...]
    """One for each metric of the table, in its unit; a text where the publication tells it in words; None: not told."""
    loads: tuple[str, ...] = ()
    """Labels, instead of the table's."""


@dataclass(frozen=True)
class PublishedTable:
    """Figures of one publication, all of the same kind."""

    title: str
    """What was run, as the publication tells it: `ghz -c 100 -n 10000, a call takes 10 ms`."""
    metrics: tuple[str, ...]
    """Of `model/metric.py`."""
    rows: tuple[PublishedRow, ...]
    loads: tuple[str, ...] = ()
    """Labels of the loads that are shown beside each other; empty: the first that shows a metric."""


@dataclass(frozen=True)
class Here:
    """What was measured for one published figure under one load."""

    load: str
    driver: str
    measured: Interval | None
    reason: str = ""
    """Why there is no number."""
    limit: str = ""
    """`at least` or `at most`, where the measuring ended before the server did."""


@dataclass(frozen=True)
class Line:
    """One published figure with what was measured here."""

    of: str
    called: str
    metric: str
    published: float | str | None
    here: tuple[Here, ...]


@dataclass(frozen=True)
class Compared:
    """A published table, figure by figure."""

    title: str
    lines: tuple[Line, ...]
