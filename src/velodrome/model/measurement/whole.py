"""A trial that was measured, with all that was told of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from velodrome.model.flag import Flag, FlagKind, Severity
from velodrome.model.measurement.beside import CompanionFacts, IdleFacts, UpstreamFacts
from velodrome.model.measurement.link import LinkFacts
from velodrome.model.measurement.load import LoadFacts
from velodrome.model.measurement.machine import HostFacts, Placement, QueueFacts
from velodrome.model.measurement.server import AnswerForm, ServerFacts
from velodrome.model.trial import Trial


@dataclass(frozen=True)
class Measurement:
    """A trial that ran to its end."""

    trial: Trial
    started_at: str
    """ISO 8601, UTC."""
    load: LoadFacts
    server: ServerFacts
    queue: QueueFacts
    host: HostFacts
    placement: Placement
    flags: tuple[Flag, ...]
    upstream: UpstreamFacts | None = None
    command: tuple[str, ...] = ()
    """The server's command line as executed."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Installed in the server's environment: name to version."""
    python: str = ""
    """Version of the server's interpreter."""
    last_lines: tuple[str, ...] = ()
    """The end of the server's output, kept when it died or did not stop; escape before showing."""
    idle: IdleFacts | None = None
    """None: none were asked for."""
    companions: tuple[CompanionFacts, ...] = ()
    link: LinkFacts | None = None
    """None: loopback."""
    form: AnswerForm | None = None
    """None: not looked at, as the answer is not a body over HTTP/1.1."""

    @property
    def doubts(self) -> frozenset[FlagKind]:
        """The kinds of flag that set it aside."""
        return frozenset(flag.kind for flag in self.flags if flag.severity is Severity.INVALID)

    @property
    def valid(self) -> bool:
        """Whether no flag sets it aside."""
        return not self.doubts

    @property
    def cpu_us_per_request(self) -> float | None:
        """Server CPU per right answer, microseconds; both over the measured span."""
        return self.server.cpu_s * 1e6 / self.load.answers if self.load.answers else None

    @property
    def memory_bytes(self) -> int:
        """The most memory the server had: shared pages once where that can be told."""
        return self.server.pss_peak_bytes or self.server.rss_peak_bytes
