"""A published conclusion, the figures it is judged again by, published tables, and experiments that no load answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from velodrome.model.quantity import Interval


@dataclass(frozen=True)
class Figure:
    """Names one number that a study measures."""

    metric: str
    """One of `model/condition.py`, such as `throughput_rps`, or, of an experiment, the name of a fact."""
    cell: str = ""
    """`question/contestant`."""
    load: str = ""
    """Label of the load; empty: the first of the question that shows the metric."""
    experiment: str = ""
    """Instead of a cell."""


@dataclass(frozen=True)
class Check:
    """One comparison a claim rests on: a figure, or the ratio of two, against a bound."""

    figure: Figure
    over: Figure | None
    """Divide by this figure, block by block."""
    at_least: float | None
    at_most: float | None
    """The claim holds where the number is within these."""
    published: float | None = None
    """What the publication gives for it."""
    equals: str | bool | None = None
    """For a fact that is no number: the claim holds where it is this."""
    about: str = ""
    """What is compared, in words, for the table."""
    than: tuple[Figure, Figure] | None = None
    """Divide by the ratio of these two as well: how much more the first gains than the second."""
    bound_ms: float | None = None
    """For `sustained_rps`: the p99 up to which a rate holds; None: four times what the recipe waits."""
    informs: str = ""
    """Why it may come to something else than those that decide, where it stands beside them; empty: it decides."""


@dataclass(frozen=True)
class Arithmetic:
    """A set-up as the publication describes it, for Little's law: `slots` that each wait `wait_ms`."""

    slots: int
    what: str
    """What a slot is: `workers`, `connections`."""
    wait_ms: float
    published_rps: float


@dataclass(frozen=True)
class Contradiction:
    """Two figures of one publication for the same thing: what its text says, and the quotient of its own table."""

    about: str
    says: float
    a: float
    b: float
    """The table gives a ÷ b."""


@dataclass(frozen=True)
class Claim:
    """One conclusion of a publication. It holds where all its checks hold that decide."""

    name: str
    """As the publication's sheet numbers it: `G1`."""
    says: str
    """The conclusion, one sentence."""
    checks: tuple[Check, ...]
    needs_cpus: int = 1
    """CPUs the server must have to itself before the claim can be judged at all."""
    remark: str = ""
    """What a reader must know besides."""
    arithmetic: tuple[Arithmetic, ...] = ()
    """Published figures that can be held against Little's law."""
    contradictions: tuple[Contradiction, ...] = ()
    """Published figures that can be held against each other."""


class Judgement(StrEnum):
    """What became of a claim, or of one of its checks."""

    HOLDS = "holds"
    FAILS = "does not hold here"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Checked:
    """One check with what was measured."""

    check: Check
    judgement: Judgement
    measured: Interval | None
    """None for what is no number, and where nothing was measured."""
    found: str = ""
    """The fact, where it is no number."""
    reason: str = ""
    """Why it holds or not, or why it is undecided."""
    limit: str = ""
    """`at least` or `at most`, where what was tried does not reach further than the figure."""


@dataclass(frozen=True)
class Judged:
    """A claim with its judgement."""

    claim: Claim
    judgement: Judgement
    checked: tuple[Checked, ...]
    reason: str
    """One sentence."""
    contradictions: tuple[str, ...] = ()
    """Where the published figures contradict arithmetic or each other, as sentences."""


@dataclass(frozen=True)
class PublishedRow:
    """One system of a published table."""

    of: str
    """The cell that is the same system here: `question/contestant`."""
    published: tuple[float | str | None, ...]
    """One for each metric of the table, in its unit; a text where the publication uses words; None: not published."""
    loads: tuple[str, ...] = ()
    """Labels, instead of the table's."""


@dataclass(frozen=True)
class PublishedTable:
    """Figures of one publication, all of the same kind."""

    title: str
    """What was run, as the publication describes it: `ghz -c 100 -n 10000, a call takes 10 ms`."""
    metrics: tuple[str, ...]
    """Of `model/condition.py`."""
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


Fact = float | str | bool | None
Setting = float | int | str | bool | tuple[str, ...]


@dataclass(frozen=True)
class Experiment:
    """What to try, and how; the trying is a file in `run/experiments/` called like `kind`."""

    name: str
    """Within a study; claims name it."""
    kind: str
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """Only those that differ from the kind's defaults."""
    deadline_s: float | None = None
    """Instead of the kind's."""


@dataclass(frozen=True)
class Finding:
    """What an experiment came to; ending at its deadline is a fact like any other."""

    experiment: Experiment
    started_at: str
    """ISO 8601, UTC."""
    facts: Mapping[str, Fact] = field(default_factory=dict)
    """By name; units are in the names. None: could not be measured."""
    sentence: str = ""
    """What was seen, for people."""
    failed: str = ""
    """Why it could not be tried at all, with the cure, or empty."""
    last_lines: tuple[str, ...] = ()
    """The end of what the programs under test printed; escape before showing."""
