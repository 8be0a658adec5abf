"""What flags are raised by: the facts of one measurement, and how their sentences write numbers."""

from collections.abc import Callable
from dataclasses import dataclass

from velodrome.model.load import Closed, Load
from velodrome.model.measurement import AnswerForm, Flag, IdleFacts, LinkFacts, LoadFacts, UpstreamFacts
from velodrome.run.measuring.sampler import Sampled

FAILURES = ("refused", "reset", "timeout", "bad_status", "wrong_body", "bad_protocol")
"""Outcomes that are a server's fault. `unfinished` is none: every closed loop ends with requests in flight.
"""


REOPENED = 0.01
"""Connections opened again per request: from here on the server closes them as a habit."""


@dataclass(frozen=True)
class Evidence:
    """Facts only; durations in the units of their names."""

    load: Load
    facts: LoadFacts
    sampled: Sampled
    machine_cpus: int
    """CPUs of the machine, whoever was given them."""
    upstream: UpstreamFacts | None = None
    link: LinkFacts | None = None
    rtt_ms: float = 0.0
    """Of the link, as configured; 0: loopback."""
    rate_mbit: float | None = None
    """Of the link's bottleneck, each way; None: none was configured."""
    load_cpus: int = 1
    """CPUs that generator and relay share."""
    beside_cpus: int = 1
    """CPUs that third party and databases share."""
    beside_load: bool = True
    """Whether the generator is on these as well."""
    shared_share: float = 0.0
    """The largest share of one of the server's CPUs that was used by what measures it."""
    wait_ms: float = 0.0
    """What a request waits at least, by its recipe; 0: not known."""
    workers: int | None = None
    """Requested worker processes; None: the stack has no such knob."""
    idle: IdleFacts | None = None
    """Connections held beside the load; None: none were requested."""
    form: AnswerForm | None = None
    """How the server writes its answers; None: not looked at."""
    exit_status: int | None = None
    """Of the server, when it ended before it was stopped."""

    @property
    def closed(self) -> Closed | None:
        """The pace, if it is a closed loop."""
        return self.load.pace if isinstance(self.load.pace, Closed) else None

    @property
    def reopens(self) -> bool:
        """Whether connections are opened for single requests: the load closes them, or the server does by habit."""
        return (
            not self.load.keepalive or (self.facts.connections_reopened or 0) > REOPENED * self.facts.requests
        )

    @property
    def failures(self) -> int:
        """Requests that came to anything but a right answer or the end of the run."""
        return sum(self.facts.outcomes.get(outcome, 0) for outcome in FAILURES)


Check = Callable[[Evidence], Flag | None]


def count(number: float) -> str:
    """Write a number for people: `4,000`, `12.5`, `0.031`; three digits are more than any of them deserve."""
    if number >= 100 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.3g}"


def percent(share: float) -> str:
    """Write a share as per cent, one digit below ten: `98 %`, `1.2 %`."""
    return f"{share * 100:.0f} %" if share >= 0.1 else f"{share * 100:.1f} %"


def milliseconds(value: float) -> str:
    """Write milliseconds: `0.31 ms`, `12 ms`, `3,980 ms`."""
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.2g} ms"
