"""The command, one of its options, or a file it names is wrong, unknown, or not allowed."""

from collections.abc import Sequence
from difflib import get_close_matches

from velodrome.model.errors import UsageError, VelodromeError
from velodrome.model.files import Problem

MOST_FAULTS = 10
"""Faults of a file that its message shows; the later ones are most often of the same kind."""
MOST_PROBLEMS = 100
"""Problems of a study that its message shows with their places."""
LONGEST = 400
"""Letters of one fault or problem: a file may contain names of any length."""
MOST_NAMED = 20
"""Programs and files that are listed when a study is not trusted yet."""


class UnknownNameError(UsageError):
    """Raised when a stack, recipe, study, or fault of the doctor does not exist."""

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        where = {"study": "studies", "fault": "doctor --list"}.get(kind, f"{kind}s")
        hint = f" Nearest: {', '.join(near)}." if near else ""
        super().__init__(f"no {kind} is called '{name}'.{hint} All: velodrome {where}")


class BadOptionError(UsageError):
    """Raised when an option of the command line has a wrong value."""

    def __init__(self, option: str, value: str, reason: str) -> None:
        super().__init__(f"{option} {value}: {reason}")


class CredentialsInUrlError(UsageError):
    """Raised when a URL contains a user or a password: it would be shown wherever the URL is shown."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        super().__init__(
            f"url: {scheme}://…@{rest.rpartition('@')[2]} contains a user or a password, which would be shown wherever "
            "the URL is shown. Remove them and pass -H 'Authorization: Basic …' with the output of: "
            "printf %s 'USER:PASSWORD' | base64"
        )


class MisplacedOptionError(UsageError):
    """Raised when an option does not apply to the kind of server that the URL names.

    `other` is what makes it apply to this URL, too.
    """

    def __init__(self, option: str, url: str, wanted: str, other: str = "") -> None:
        cure = f"Remove it, correct the URL, or add {other}" if other else "Remove it, or correct the URL"
        besides = f" and to HTTP/2 ({other})" if other else ""
        super().__init__(f"{option} applies only to {wanted}:// URLs{besides}, and {url} is none. {cure}")


class NeedlessOptionError(UsageError):
    """Raised when options have no effect; `why` says what they are for."""

    def __init__(self, options: Sequence[str], why: str) -> None:
        self.options = tuple(options)
        verb = "has" if len(options) == 1 else "have"
        super().__init__(f"{', '.join(options)} {verb} no effect here: {why}")


class WithoutAgentsError(NeedlessOptionError):
    """Raised when options have no effect because no agents are named."""

    def __init__(self, options: Sequence[str]) -> None:
        super().__init__(options, "only agents need it; add --agents tls://host:8786, or leave it out")


class RequestsFileError(UsageError):
    """Raised when a file of requests is invalid; reports all faults together."""

    def __init__(self, path: str, faults: Sequence[str]) -> None:
        self.path, self.faults = path, tuple(faults)
        more = f"; and {len(faults) - MOST_FAULTS} more" if len(faults) > MOST_FAULTS else ""
        super().__init__(f"{path}: {'; '.join(map(_short, faults[:MOST_FAULTS]))}{more}")


class AccessLogError(UsageError):
    """Raised when no request can be made from an access log; `why` is the reason."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")


class OpenApiError(UsageError):
    """Raised when no request can be made from an OpenAPI document; `why` is the reason."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")


class TooLargeError(UsageError):
    """Raised when a file, or what it expands to, exceeds the limit of what is read.

    `place` is a line (`line 7`) or a JSON pointer (`#/paths/~1items/get`), empty for the whole file; `budget` is the
    limit, such as `2 000 000 values`.
    """

    def __init__(self, path: str, place: str, budget: str) -> None:
        self.path, self.place, self.budget = path, place, budget
        where = f"{path}, {place}" if place else path
        super().__init__(
            f"{where}: it contains, or expands to, more than {budget}, which is the limit. Use a smaller file, or one "
            "with fewer repetitions"
        )


class RequestLineError(UsageError):
    """Raised when a line does not describe a request; `why` is what is wrong with it."""

    def __init__(self, line: str, why: str) -> None:
        self.line = line
        super().__init__(
            f"'{line}' is not a request: {why}. Write it as 'GET /cart?id=7' or "
            "'POST /orders {\"id\": 1} -> 201'"
        )


class NoSourceError(UsageError):
    """Raised when no option names a source of requests."""

    def __init__(self, example: str) -> None:
        super().__init__(
            f"no source of requests; name an access log, an OpenAPI document or a file: {example}"
        )


class TwoSourcesError(UsageError):
    """Raised when two options each define the requests to an app."""

    def __init__(self, options: Sequence[str]) -> None:
        super().__init__(f"{' and '.join(options)} each define the requests; use only one of them")


class UnknownKnobError(UsageError):
    """Raised when a stack has no such setting, or the setting has no value."""

    def __init__(self, stack: str, knob: str, known: Sequence[str]) -> None:
        super().__init__(
            f"'{knob}' is not a setting of {stack}; write one of these as name=value: {', '.join(known)}"
        )


class NoStudiesError(UsageError):
    """Raised when a folder that is to be run as a group has no study in it."""

    def __init__(self, folder: str) -> None:
        super().__init__(
            f"the folder {folder} has no study (*.toml) in it. Name a study file, a folder of studies, or one that "
            "ships: velodrome studies"
        )


class BrokenPluginError(UsageError):
    """Raised when the file of a stack or recipe could not be loaded."""

    def __init__(self, kind: str, name: str, reason: str) -> None:
        super().__init__(f"the {kind} '{name}' could not be loaded: {reason}")


class StudyFileError(UsageError):
    """Raised when a study file has problems: holds all of them, in the order of the file."""

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        self.path, self.problems = path, tuple(sorted(problems))
        places = [f"line {problem.line}, column {problem.column}" for problem in self.problems]
        width = max(map(len, places), default=0)
        lines = [
            f"  {place:<{width}}   {_short(problem.sentence)}"
            for place, problem in zip(places[:MOST_PROBLEMS], self.problems[:MOST_PROBLEMS], strict=True)
        ]
        if len(self.problems) > MOST_PROBLEMS:
            lines.append(f"  and {len(self.problems) - MOST_PROBLEMS} more")
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        super().__init__("\n".join([f"{path} has {count}; nothing was run", *lines]))


class NothingSelectedError(UsageError):
    """Raised when `--only` leaves no trial of a study."""

    def __init__(self, pattern: str, cells: Sequence[str]) -> None:
        near = get_close_matches(pattern, cells, n=3, cutoff=0.4)
        hint = f"Nearest: {', '.join(near)}." if near else f"Cells of this study: {', '.join(cells[:8])}"
        more = f" and {len(cells) - 8} more" if not near and len(cells) > 8 else ""
        super().__init__(f"--only '{pattern}' matches no question/contestant of this study. {hint}{more}")


class MissingLibraryError(UsageError):
    """Raised when results are to become a table of a library that is not installed."""

    def __init__(self, library: str) -> None:
        self.library = library
        super().__init__(f"{library} is not installed. Install it with: pip install {library}")


class UntrustedError(UsageError):
    """Raised before a file's programs are touched; `named` are such as `executes './x.sh' (contestant old)`."""

    def __init__(self, path: str, named: Sequence[str]) -> None:
        self.path, self.named = path, tuple(named)
        lines = [f"\n  {line}" for line in self.named[:MOST_NAMED]]
        if len(self.named) > MOST_NAMED:
            lines.append(f"\n  and {len(self.named) - MOST_NAMED} more")
        super().__init__(
            f"{path} names programs, files or packages that you have not allowed, so nothing was run:{''.join(lines)}\n"
            "  The author of the file decides what they do. If you trust it, pass --trust (in Python: trust=True). "
            "Velodrome remembers this until one of these changes"
        )


class UnknownLoadMetricError(UsageError):
    """Raised when a condition names a metric that a load does not report."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"Nearest: {', '.join(near)}. " if near else ""
        super().__init__(
            f"unknown metric '{name}'. {hint}Known: percentiles (p50 … p99.99), mean and max, also of sent, lag, "
            "connect, tls, first_byte and last_byte (as sent.p99); errors, rate and timeout; see docs/load-results.md"
        )


class NeverMeasuredError(UsageError):
    """Raised when a condition on a server that velodrome starts has a figure that its trials never have.

    `spans` and `counted` are those that they have.
    """

    def __init__(self, text: str, name: str, spans: Sequence[str], counted: Sequence[str]) -> None:
        self.text, self.name = text, name
        super().__init__(
            f"'{name}' of the condition '{text}' is never measured here, so nothing could decide it. Measured are "
            f"percentiles (p50 … p99.99), mean and max, also of {', '.join(spans)} (as {spans[0]}.p99); "
            f"{', '.join(counted)}"
        )


class ConditionError(UsageError):
    """Raised when a condition is invalid. `at`: where the mistake is, counted from 0; `holds`: it is to hold."""

    MUST_HOLD, MUST_NOT = "'p99 < 50ms and errors < 0.1%'", "'p99 > 50ms or errors > 0.1%'"

    def __init__(self, text: str, at: int, problem: str, *, holds: bool = False) -> None:
        self.text, self.at, self.problem = text, at, problem
        super().__init__(
            f"the condition '{text}' is invalid at character {at + 1}: {problem}. "
            f"Write it as {self.MUST_HOLD if holds or '<' in text else self.MUST_NOT}"
        )


class SloError(UsageError):
    """Raised when what must hold is the opposite of what anybody wants."""

    def __init__(self, text: str, part: str, wanted: str) -> None:
        self.text = text
        other = part.replace(">", "<") if ">" in part else part.replace("<", ">")
        super().__init__(
            f"'{part}' of --slo is what must hold, and should say what a figure may be {wanted}. Write it as '{other}'"
        )


class ThresholdError(UsageError):
    """Raised when a threshold or a margin of a diff is invalid."""

    def __init__(self, text: str, problem: str) -> None:
        self.text = text
        super().__init__(f"'{text}': {problem}")


class InsufficientDataError(VelodromeError):
    """Raised when the data do not show on which side of a limit a figure lies (exit code 4)."""

    exit_code = 4

    def __init__(self, found: str, cure: str = "") -> None:
        self.found, self.cure = found, cure
        super().__init__(f"insufficient data: {found}" + (f"; {cure}" if cure else ""))


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= LONGEST else f"{sentence[:LONGEST]}…"
