"""Before and after a change: what became worse, better, stayed the same, or is undecided."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from velodrome.model.condition import Threshold
from velodrome.model.diagnosis import Suspected
from velodrome.model.quantity import Interval


class Change(StrEnum):
    """What a difference is."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    SAME = "no difference"
    """Beyond the margin."""
    INSUFFICIENT = "insufficient data"


@dataclass(frozen=True)
class Side:
    """One of the two sides: a stored run, or a revision."""

    name: str
    """As it was requested: a folder, or `HEAD~1`."""
    told: str = ""
    """What it is beside that: when it was run, the commit."""


@dataclass(frozen=True)
class Difference:
    """One figure of one cell under one load."""

    question: str
    contestant: str
    called: str
    """How the contestant reads in a sentence."""
    load: str
    metric: str
    """One of `DIFF_METRICS`."""
    before: float | None
    """All valid blocks together; percentiles of their merged histograms. None: nothing was measured."""
    after: float | None
    change: Change
    margin: float
    """A difference below this is none: as a share, of `errors` as a share of the requests."""
    interval: Interval | None = None
    """After over before, 95 %, of this figure alone; of `errors` after less before."""
    chance: float | None = None
    """How often blocks differ so much by chance where nothing changed; this figure alone."""
    chance_in_all: float | None = None
    """The same with all figures of the diff in mind (Holm): a difference is called a change below 0.05."""
    blocks: tuple[int, int] = (0, 0)
    """That count, before and after."""
    more_blocks: int | None = None
    """So many would decide; None: none are needed, or none would help."""
    reason: str = ""
    """Why it is undecided, or what made it clear without figures."""

    @property
    def cell(self) -> str:
        """`question/contestant`."""
        return f"{self.question}/{self.contestant}"


@dataclass(frozen=True)
class Gate:
    """What became of a threshold in one cell under one load."""

    threshold: Threshold
    difference: Difference
    held: bool | None
    """None: undecided."""
    reason: str = ""
    """Why it is undecided, where no more blocks help."""
    more_blocks: int | None = None
    """So many would decide."""


@dataclass(frozen=True)
class Diff:
    """The whole."""

    before: Side
    after: Side
    paired: bool
    """Whether the blocks of both were interleaved in one run."""
    change: Change
    sentence: str
    """The answer, for people."""
    differences: tuple[Difference, ...]
    gates: tuple[Gate, ...] = ()
    set_aside: tuple[str, ...] = ()
    """One sentence for each flagged or failed measurement that is left out."""
    notes: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    block_s: float = 0.0
    """Seconds that another block of both sides takes."""
    suspects: tuple[Suspected, ...] = ()
    """Faults that the figures of either side make likely; nothing is proven of them."""
