"""Every error velodrome raises on purpose. A class composes its sentence from facts; callers pass facts only.

Exit codes: 0 fine, 1 a claim or threshold failed, 2 usage or configuration, 3 the lab itself could not run.
"""

import os
from collections.abc import Sequence
from difflib import get_close_matches

from velodrome.model.problem import Problem


class VelodromeError(Exception):
    """Root of all errors a user can cause or cure; `exit_code` is what the command ends with."""

    exit_code = 3


class UsageError(VelodromeError):
    """Root of the errors in what was asked (exit code 2)."""

    exit_code = 2


class UnknownNameError(UsageError):
    """Raised when a stack, recipe or study is asked for that does not exist."""

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        plural = {"study": "studies"}.get(kind, f"{kind}s")
        hint = f" Nearest: {', '.join(near)}." if near else ""
        super().__init__(f"no {kind} is called '{name}'.{hint} All: velodrome {plural}")


class LoadRefusedError(UsageError):
    """Raised when load is asked on a host that is neither this machine nor named with `--allow-target`."""


class EngineError(VelodromeError):
    """Raised when this machine cannot carry the load asked for: file descriptors, ports, memory."""


class OutputError(VelodromeError):
    """Raised when a file of results or a report cannot be written."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot write {path}: {reason}. Free some space or choose another place")


class DriverError(VelodromeError):
    """Raised when a load generator ended without a report that can be trusted; never counted as a result."""

    def __init__(self, driver: str, status: int, last_lines: Sequence[str]) -> None:
        self.last_lines = tuple(last_lines)
        how = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
        tail = "".join(f"\n  {line}" for line in last_lines)
        tail = f" Its last lines:{tail}" if tail else ""
        super().__init__(f"the load generator {driver} {how} and left no result; run the trial again.{tail}")


class DriverTimedOutError(DriverError):
    """Raised when a load generator did not end long after its load should have."""

    def __init__(self, driver: str, slack_s: float, last_lines: Sequence[str], hint: str = "") -> None:
        super().__init__(driver, -9, last_lines)
        self.args = (
            f"the load generator {driver} was still running {slack_s:g} s after its load should have ended "
            f"and was stopped; nothing it measured is kept. {hint or 'Run the trial again'}",
        )


class DriverStoppedError(DriverError):
    """Raised when a load was ended before its end, by Ctrl-C or because its server had died."""

    def __init__(self, driver: str) -> None:
        super().__init__(driver, 0, ())
        self.args = (f"the load by {driver} was ended before its end; nothing it measured is kept",)


class DriverFailedError(DriverError):
    """Raised when another load generator ended with an error of its own."""

    def __init__(self, driver: str, status: int, last_lines: Sequence[str], hint: str = "") -> None:
        super().__init__(driver, status, last_lines)
        how = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
        said = f": {'; '.join(last_lines[-2:])}" if last_lines else " and said nothing"
        cure = hint or "Run its command by hand to see more"
        self.args = (f"{driver} {how}{said.rstrip('.')}. Nothing it measured is kept. {cure}",)


class DriverOutputError(DriverError):
    """Raised when another load generator printed something that is not understood: no figure is made of it."""

    def __init__(self, driver: str, version: str, what: str, last_lines: Sequence[str]) -> None:
        super().__init__(driver, 0, last_lines)
        self.args = (
            f"{driver} {version} printed something unforeseen: {what}. Nothing of it is kept. Install a version "
            "that `velodrome drivers` names as tried",
        )


class MostlyFailedError(DriverError):
    """Raised when most requests of another load generator failed: what it then tells as a rate is none."""

    def __init__(self, driver: str, failed: int, requests: int, examples: Sequence[str]) -> None:
        super().__init__(driver, 0, examples)
        self.failed, self.requests = failed, requests
        said = f", most often so: {examples[0]}" if examples else ""
        self.args = (
            f"{failed:,} of {requests:,} requests by {driver} failed{said.rstrip('.')}. A rate of failures "
            "measures nothing. Look at the server's log, and lower the load",
        )


class NothingAskedError(DriverError):
    """Raised when another load generator tells of no request at all: it never connected, or nothing answered."""

    def __init__(self, driver: str, span_s: float) -> None:
        super().__init__(driver, 0, ())
        self.args = (
            f"{driver} tells of no request in {span_s:.3g} s: it never connected, or no answer came in all that "
            "time. Look at the server's log, and load longer than a request takes",
        )


class ProfilerError(VelodromeError):
    """Raised when a server cannot be profiled; the race goes on without that profile."""

    def __init__(self, reason: str, cure: str) -> None:
        self.reason, self.cure = reason, cure
        super().__init__(f"py-spy could not sample the server: {reason.rstrip('.')}. {cure}")


class DriverMissingError(UsageError):
    """Raised when a load asks for a generator that is not installed here."""

    def __init__(self, driver: str, cure: str) -> None:
        super().__init__(
            f"{driver} is not installed: it is neither on PATH nor where Go and Cargo install. {cure}"
        )


class DriverTooOldError(UsageError):
    """Raised when a generator is installed in a version that cannot be driven."""

    def __init__(self, driver: str, path: str, found: str, needed: str, cure: str) -> None:
        what = f"it is {found}" if found else "it does not tell its version"
        super().__init__(f"{driver} at {path} cannot be used: {what}, {needed} or newer is needed. {cure}")


class UnfitLoadError(UsageError):
    """Raised when a load asks a generator for what it cannot do: never replaced by something else in silence."""

    def __init__(self, driver: str, field: str, value: object, can: str) -> None:
        self.driver, self.field = driver, field
        super().__init__(f"{driver} cannot carry a load with {field} = {value}: {can}")


class UpstreamError(VelodromeError):
    """Raised when the simulated third party does not start, or dies."""

    def __init__(self, reason: str, last_lines: Sequence[str] = ()) -> None:
        tail = "".join(f"\n  {line}" for line in last_lines)
        tail = f" Its last lines:{tail}" if tail else ""
        super().__init__(f"the simulated third party cannot serve: {reason}.{tail}")


class IdleError(VelodromeError):
    """Raised when idle connections cannot be held from this machine at all."""

    def __init__(self, reason: str, last_lines: Sequence[str] = ()) -> None:
        tail = "".join(f"\n  {line}" for line in last_lines)
        tail = f" Its last lines:{tail}" if tail else ""
        super().__init__(
            f"idle connections cannot be held: {reason}.{tail} Raise the limit of open files (ulimit -n), or ask "
            "for fewer"
        )


class StartRefusedError(VelodromeError):
    """Raised when the kernel refuses to start a process as it was ordered: `stage` says at which step."""

    def __init__(self, stage: str, what: str, errno: int) -> None:
        self.stage, self.what, self.errno = stage, what, errno
        reason = os.strerror(errno) if errno else "see above"
        step = {
            "group": f"the control group {what} cannot be used",
            "affinity": f"it cannot be placed on CPU {what}",
            "rlimit": f"the limit {what} is refused",
            "cwd": f"the folder {what} cannot be entered",
            "exec": f"{what} cannot be executed",
            "warden": f"its supervisor did not come up ({what or 'no output'})",
        }.get(stage, f"{stage} failed")
        super().__init__(f"a process could not be started: {step}: {reason}")


class LimitError(UsageError):
    """Raised when a limit asked for cannot be enforced on this machine; never ignored in silence."""

    def __init__(self, limit: str, reason: str, cure: str) -> None:
        self.limit = limit
        super().__init__(f"the limit {limit} is impossible here: {reason}. {cure}")


class LinkRefusedError(VelodromeError):
    """Raised when this machine does not allow a link: `stage` says at which step, `errno` what the kernel said."""

    def __init__(self, stage: str, errno: int, what: str = "") -> None:
        self.stage, self.errno = stage, errno
        said = os.strerror(errno) if errno else ""
        reason, cure = {
            "system": ("only Linux has network namespaces", "Run this study on Linux"),
            "namespace": (
                f"velodrome may not make network namespaces ({said})",
                "Run it as root; or, where users may have namespaces and all environments are made, by "
                "`unshare -Urn velodrome …`; a container needs --cap-add NET_ADMIN --cap-add SYS_ADMIN "
                "--device /dev/net/tun",
            ),
            "device": (
                f"/dev/net/tun cannot be used ({said})",
                "Load its module (modprobe tun); a container needs --cap-add NET_ADMIN --device /dev/net/tun",
            ),
            "congestion": (
                f"this kernel has no congestion control called {what} ({said})",
                f"Load its module (modprobe tcp_{what}), or ask for another with congestion=",
            ),
        }.get(stage, (f"{what or stage} is refused ({said})", "See that velodrome has CAP_NET_ADMIN"))
        super().__init__(f"a link is impossible here: {reason}. {cure}, or leave the link out")


class LinkError(VelodromeError):
    """Raised when a link that was made does not do what it was asked for, or its relay has died."""

    def __init__(self, link: str, reason: str, last_lines: Sequence[str] = ()) -> None:
        tail = "".join(f"\n  {line}" for line in last_lines)
        tail = f" Its last lines:{tail}" if tail else ""
        super().__init__(f"the link {link} failed: {reason}.{tail}")


class BusyError(VelodromeError):
    """Raised when another velodrome measures on this machine: two at once would measure each other."""

    def __init__(self, holder: str, waited_s: float) -> None:
        waited = f" still, after {waited_s:.0f} s" if waited_s >= 1 else ""
        super().__init__(
            f"another velodrome measures on this machine{waited} ({holder or 'which one is not known'}). "
            "Wait for it to end, or wait in line with --wait"
        )


class ResultsError(VelodromeError):
    """Raised when a file of results cannot be read: another kind, another schema, or damaged."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        self.path, self.line = path, line
        where = f"{path}, line {line}" if line else path
        super().__init__(f"cannot read {where}: {reason}")


class StudyChangedError(UsageError):
    """Raised when results are to be resumed or compared under other conditions than they were begun with."""

    def __init__(self, path: str, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__(
            f"{path} was begun under other conditions ({'; '.join(differences)}), so it cannot be continued. "
            "Choose another folder with --out, or run the study as it was"
        )


class RaceInterruptedError(VelodromeError):
    """Raised when a race was stopped by Ctrl-C or SIGTERM; what was finished is kept."""

    exit_code = 130

    def __init__(self, path: str, done: int, total: int) -> None:
        self.path, self.done, self.total = path, done, total
        super().__init__(f"stopped; {done} of {total} trials are kept in {path}. Go on with --resume")


class StudyFileError(UsageError):
    """Raised when a study file has problems: holds all of them, in the order of the file."""

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        self.path, self.problems = path, tuple(sorted(problems))
        places = [f"line {problem.line}, column {problem.column}" for problem in self.problems]
        width = max(map(len, places), default=0)
        lines = [
            f"  {place:<{width}}   {problem.sentence}"
            for place, problem in zip(places, self.problems, strict=True)
        ]
        count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
        super().__init__("\n".join([f"{path} has {count}; nothing was run", *lines]))


class NothingSelectedError(UsageError):
    """Raised when `--only` leaves no trial of a study."""

    def __init__(self, pattern: str, cells: Sequence[str]) -> None:
        near = get_close_matches(pattern, cells, n=3, cutoff=0.4)
        hint = f"Nearest: {', '.join(near)}." if near else f"Cells of this study: {', '.join(cells[:8])}"
        more = f" and {len(cells) - 8} more" if not near and len(cells) > 8 else ""
        super().__init__(f"--only '{pattern}' matches no question/contestant of this study. {hint}{more}")


class DifferentMachinesError(UsageError):
    """Raised when results of different machines were given to one verdict: such figures cannot be compared."""

    def __init__(self, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__(
            f"these results come from different machines ({'; '.join(differences)}); "
            "figures of one machine say nothing about another. Judge them one by one"
        )


class UnknownKnobError(UsageError):
    """Raised when a stack is given a setting it does not have, or one without a value."""

    def __init__(self, stack: str, knob: str, known: Sequence[str]) -> None:
        super().__init__(
            f"'{knob}' is no setting of {stack}; write one of these as name=value: {', '.join(known)}"
        )


class NoPortError(VelodromeError):
    """Raised when no free port was found to start a server on."""

    def __init__(self, host: str, tries: int) -> None:
        super().__init__(
            f"no free port on {host}: {tries} were tried and all are taken or may not be bound. "
            "End what listens there (ss -ltnp shows it)"
        )


class UvMissingError(VelodromeError):
    """Raised when there is no uv to make the stacks' environments with."""

    def __init__(self) -> None:
        super().__init__(
            "uv, which makes the environments of the stacks, is neither installed with velodrome nor on PATH. "
            "Install it: python -m pip install uv"
        )


class InterpreterNotFoundError(UsageError):
    """Raised when a Python is asked for that this machine does not have, or that does not run."""

    def __init__(self, asked: str, reason: str) -> None:
        super().__init__(
            f"no interpreter for '{asked}': {reason}. Give the path of one, or install it: uv python install 3.x"
        )


class EnvironmentFailedError(VelodromeError):
    """Raised when a stack cannot have its environment here; the other stacks go on."""

    def __init__(self, stack: str, reason: str, cure: str, last_lines: Sequence[str] = ()) -> None:
        self.stack, self.reason, self.cure, self.last_lines = stack, reason, cure, tuple(last_lines)
        tail = f" The last lines of uv:\n  {chr(10).join(last_lines)}\n " if last_lines else ""
        super().__init__(f"{stack} cannot run here: {reason}.{tail} Cure: {cure}".replace("\n", "\n  "))


class UnreadableVerdictError(VelodromeError):
    """Raised when a verdict.json is asked for that is missing, cut short or of another schema."""

    def __init__(self, path: str, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(f"cannot read {path}: {problem}. Judge the results again: velodrome judge RUN")


class ResultsInUseError(VelodromeError):
    """Raised when two velodromes are to write one file of results."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is written by another velodrome now. Wait for it, or choose another --out")


class ResultsExistError(UsageError):
    """Raised when a new run would write over the results of an older one."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is there already; go on with it by --resume, or choose another --out")


class BadOptionError(UsageError):
    """Raised when an option of the command line has a value that makes no sense."""

    def __init__(self, option: str, value: str, reason: str) -> None:
        super().__init__(f"{option} {value}: {reason}")


class MisplacedOptionError(UsageError):
    """Raised when an option is given that says nothing to the kind of server that the URL names."""

    def __init__(self, option: str, url: str, wanted: str) -> None:
        super().__init__(
            f"{option} goes with {wanted}:// URLs, and {url} is none: leave it out, or correct the URL"
        )


class UnknownDriverError(UsageError):
    """Raised when a load asks for a generator that velodrome cannot drive."""

    def __init__(self, driver: str, known: Sequence[str]) -> None:
        super().__init__(f"no driver is called '{driver}'. There are: {', '.join(known)}")


class CalibrationError(VelodromeError):
    """Raised when an interpreter does not tell how fast it computes."""

    def __init__(self, python: str, reason: str) -> None:
        super().__init__(f"{python} could not be asked how fast it computes: {reason}")


class BrokenPluginError(UsageError):
    """Raised when a stack or recipe is asked for whose file could not be loaded."""

    def __init__(self, kind: str, name: str, reason: str) -> None:
        super().__init__(f"the {kind} '{name}' could not be loaded: {reason}")


class ServerNotReadyError(VelodromeError):
    """Raised when the server of an experiment does not start, or answers wrongly."""

    def __init__(self, stack: str, reason: str, last_lines: Sequence[str] = ()) -> None:
        tail = "".join(f"\n  {line}" for line in last_lines)
        super().__init__(f"{stack} is of no use to this experiment: {reason}.{tail}")


class ProgramError(VelodromeError):
    """Raised when a program of an experiment tells nothing that can be read."""

    def __init__(self, program: str, how: str, last_lines: Sequence[str] = ()) -> None:
        tail = "".join(f"\n  {line}" for line in last_lines)
        super().__init__(f"{program} told nothing: {how}.{tail}")


class ClaimsFailedError(VelodromeError):
    """Raised at the end of a run with `--strict` in which a claim did not hold (exit code 1)."""

    exit_code = 1

    def __init__(self, study: str, claims: Sequence[str]) -> None:
        self.claims = tuple(claims)
        verb = "does" if len(claims) == 1 else "do"
        super().__init__(f"{', '.join(claims)} of {study} {verb} not hold here; why is told above")


class NothingMeasuredError(VelodromeError):
    """Raised at the end of a race in which no contestant could be measured."""

    def __init__(self, path: str) -> None:
        super().__init__(f"no contestant could be measured; why is told above and in {path}")


class CompanionMissingError(VelodromeError):
    """Raised when a recipe asks a database that is not installed here and that nobody brought."""

    def __init__(self, name: str, title: str, reason: str, package: str, example: str) -> None:
        install = f"Install it (Debian: apt install {package}), or name" if package else "Name"
        variable = f"VELODROME_{name.upper()}"
        super().__init__(
            f"{title} is not here: {reason}. {install} one that runs: --database {name}={example}, or {variable} "
            "in the environment"
        )


class CompanionFailedError(VelodromeError):
    """Raised when a database that a recipe asks does not start, or gives no right answer."""

    def __init__(self, title: str, reason: str, last_lines: Sequence[str] = ()) -> None:
        self.reason, self.last_lines = reason, tuple(last_lines)
        tail = "".join(f"\n  {line}" for line in last_lines)
        super().__init__(f"{title} cannot be asked: {reason}.{' Its last lines:' if tail else ''}{tail}")


class UnknownLoadMetricError(UsageError):
    """Raised when a condition names something that a load does not tell."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"Nearest: {', '.join(near)}. " if near else ""
        super().__init__(
            f"a load tells nothing called '{name}'. {hint}There are percentiles (p50 … p99.99), mean and max, of "
            "sent, lag, connect, tls, first_byte and last_byte as sent.p99, and errors, rate, timeout: see "
            "docs/load-results.md"
        )


class ConditionError(UsageError):
    """Raised when a condition cannot be read. `at` is where, counted from 0."""

    def __init__(self, text: str, at: int, problem: str) -> None:
        self.text, self.at = text, at
        super().__init__(
            f"the condition '{text}' cannot be read at character {at + 1}: {problem}. "
            "It is written as 'p99 > 50ms or errors > 0.1%'"
        )
