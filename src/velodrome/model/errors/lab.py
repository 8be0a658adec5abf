"""The measurement cannot run or be stored: environments, servers, services, links, locks, results, the system."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from velodrome.model.errors import UsageError, VelodromeError, quote_lines

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
CURES = {
    "open files": "Raise the limit (ulimit -n 4096), or use fewer connections",
    "open files of the machine": "End other programs, or raise fs.file-max",
    "processes and threads": "End some of this user's processes, or raise the limit (ulimit -u; pids.max of its "
    "control group)",
    "memory": "End other programs, or use a smaller load",
}


class UvMissingError(VelodromeError):
    """Raised when uv, which creates the stacks' environments, is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "uv, which creates the environments of the stacks, is neither installed with velodrome nor on PATH. "
            "Install it: python -m pip install uv"
        )


class InterpreterNotFoundError(UsageError):
    """Raised when a Python is not installed on this machine, or does not run."""

    def __init__(self, wanted: str, reason: str) -> None:
        super().__init__(
            f"no interpreter for '{wanted}': {reason}. Give its path, or install it: uv python install 3.x"
        )


class EnvironmentFailedError(VelodromeError):
    """Raised when the environment of a stack cannot be created; the other stacks go on."""

    def __init__(self, stack: str, reason: str, cure: str, last_lines: Sequence[str] = ()) -> None:
        self.stack, self.reason, self.cure, self.last_lines = stack, reason, cure, tuple(last_lines)
        tail = f" The last lines of uv:\n  {chr(10).join(last_lines)}\n " if last_lines else ""
        super().__init__(f"{stack} cannot run here: {reason}.{tail} Cure: {cure}".replace("\n", "\n  "))

    @property
    def sentence(self) -> str:
        """The problem and its cure, without the lines of uv."""
        return f"{self.stack} cannot run here: {self.reason}. Cure: {self.cure}"


class CalibrationError(VelodromeError):
    """Raised when the speed of an interpreter cannot be measured."""

    def __init__(self, python: str, reason: str) -> None:
        super().__init__(f"the speed of {python} cannot be measured: {reason}")


class StartRefusedError(VelodromeError):
    """Raised when the kernel refuses to start a process with its settings: `stage` is the step that failed."""

    def __init__(self, stage: str, what: str, number: int) -> None:
        """`number` is the errno, 0 for none."""
        self.stage, self.what, self.errno = stage, what, number
        reason = os.strerror(number) if number else "see above"
        step = {
            "fork": "no further "
            + (
                "process is allowed for this user (ulimit -u)"
                if number == errno.EAGAIN
                else "file can be opened (ulimit -n)"
            ),
            "group": f"the control group {what} cannot be used",
            "affinity": f"it cannot be pinned to CPU {what}",
            "rlimit": f"the limit {what} is refused",
            "user": f"it cannot become user {what}",
            "cwd": f"the folder {what} cannot be created or entered",
            "exec": f"{what} cannot be executed",
            "warden": f"its supervisor did not start ({what or 'no output'})",
        }.get(stage, f"{stage} failed")
        super().__init__(f"a process could not be started: {step}: {reason}")


class LimitError(UsageError):
    """Raised when this machine cannot enforce a limit; velodrome never ignores a limit silently."""

    def __init__(self, limit: str, reason: str, cure: str) -> None:
        self.limit = limit
        super().__init__(f"the limit {limit} cannot be enforced here: {reason}. {cure}")


class NoPortError(VelodromeError):
    """Raised when no free port was found to start a server on."""

    def __init__(self, host: str, tries: int) -> None:
        super().__init__(
            f"no free port on {host}: all {tries} that were tried are in use or may not be bound. "
            "End what listens there (ss -ltnp shows it)"
        )


class ServerNotReadyError(VelodromeError):
    """Raised when the server of an experiment does not start, or its response is wrong."""

    def __init__(self, stack: str, reason: str, last_lines: Sequence[str] = ()) -> None:
        super().__init__(f"{stack} cannot be used in this experiment: {reason}.{quote_lines(last_lines)}")


class NoServerError(VelodromeError):
    """Raised when the server of a search cannot be started, or not any more.

    `tried`: its server was started, so the app may be the cause.
    """

    def __init__(
        self, label: str, reason: str, last_lines: Sequence[str] = (), *, tried: bool = True
    ) -> None:
        self.reason, self.last_lines, self.tried = reason, tuple(last_lines), tried
        text = reason if reason.startswith(label) else f"{label}: {reason}"
        super().__init__(f"{text.rstrip('.')}.{quote_lines(last_lines)}")


class ProfilerError(VelodromeError):
    """Raised when a server cannot be profiled; the race goes on without that profile."""

    def __init__(self, reason: str, cure: str) -> None:
        self.reason, self.cure = reason, cure
        super().__init__(f"py-spy could not sample the server: {reason.rstrip('.')}. {cure}")


class AccountError(UsageError):
    """Raised when foreign code cannot run as an ordinary user."""

    def __init__(self, user: str, reason: str, cure: str) -> None:
        self.user, self.reason = user, reason
        super().__init__(f"nothing can be run as user {user}: {reason}. {cure[:1].upper()}{cure[1:]}")


class UpstreamError(VelodromeError):
    """Raised when the simulated third party does not start, or dies."""

    def __init__(self, reason: str, last_lines: Sequence[str] = ()) -> None:
        self.reason, self.last_lines = reason, tuple(last_lines)
        super().__init__(f"{self.sentence}.{quote_lines(last_lines)}")

    @property
    def sentence(self) -> str:
        """The problem, without the third party's own lines."""
        return f"the simulated third party cannot serve: {self.reason}"


class CompanionMissingError(VelodromeError):
    """Raised when a recipe needs a database that is neither installed nor named."""

    def __init__(self, name: str, title: str, reason: str, package: str, example: str) -> None:
        install = f"Install it (Debian: apt install {package}), or name" if package else "Name"
        super().__init__(
            f"{title} is not available: {reason}. {install} a running one: --database {name}={example}, or "
            f"VELODROME_{name.upper()} in the environment"
        )


class CompanionFailedError(VelodromeError):
    """Raised when a service that a recipe needs does not start, or its response is wrong."""

    def __init__(self, title: str, reason: str, last_lines: Sequence[str] = ()) -> None:
        self._title, self.reason, self.last_lines = title, reason, tuple(last_lines)
        super().__init__(f"{self.sentence}.{quote_lines(last_lines)}")

    @property
    def sentence(self) -> str:
        """The problem, without the service's own lines."""
        return f"{self._title} cannot be used: {self.reason}"


class ProgramError(VelodromeError):
    """Raised when a program of an experiment prints no result that can be read."""

    def __init__(self, program: str, how: str, last_lines: Sequence[str] = ()) -> None:
        super().__init__(f"{program} printed no result: {how}.{quote_lines(last_lines)}")


class LinkRefusedError(VelodromeError):
    """Raised when this machine does not allow a link: `stage` is the step that failed, `errno` the kernel's reason."""

    def __init__(self, stage: str, number: int, what: str = "") -> None:
        """`number` is the errno, 0 for none."""
        self.stage, self.errno = stage, number
        refusal = os.strerror(number) if number else ""
        reason, cure = {
            "system": ("only Linux has network namespaces", "Run this study on Linux"),
            "namespace": (
                f"velodrome may not create network namespaces ({refusal})",
                "Run it as root; or, if users may create namespaces and all environments exist already, with "
                "`unshare -Urn velodrome …`; a container needs --cap-add NET_ADMIN --cap-add SYS_ADMIN "
                "--device /dev/net/tun",
            ),
            "device": (
                f"/dev/net/tun cannot be used ({refusal})",
                "Load its module (modprobe tun); a container needs --cap-add NET_ADMIN --device /dev/net/tun",
            ),
            "congestion": (
                f"this kernel has no congestion control called {what} ({refusal})",
                f"Load its module (modprobe tcp_{what}), or choose another with congestion=",
            ),
        }.get(stage, (f"{what or stage} is refused ({refusal})", "Check that velodrome has CAP_NET_ADMIN"))
        super().__init__(f"a link cannot be created here: {reason}. {cure}. Or run without a link")


class LinkError(VelodromeError):
    """Raised when a link does not behave as configured, or its relay has died."""

    def __init__(self, link: str, reason: str, last_lines: Sequence[str] = ()) -> None:
        super().__init__(f"the link {link} failed: {reason}.{quote_lines(last_lines)}")


class BusyError(VelodromeError):
    """Raised when another velodrome measures on this machine: two at once would disturb each other."""

    def __init__(self, holder: str, waited_s: float) -> None:
        waited = f" still, after {waited_s:.0f} s" if waited_s >= 1 else ""
        super().__init__(
            f"another velodrome measures on this machine{waited} ({holder or 'process unknown'}). "
            "Wait for it to end, or queue with --wait"
        )


class LockError(VelodromeError):
    """Raised when the file that keeps measurements apart cannot be used as a lock."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(
            f"{path} cannot be the lock of this machine's measurements: {reason}. Name another file in VELODROME_LOCK"
        )


class RaceInterruptedError(VelodromeError):
    """Raised when Ctrl-C, SIGTERM or SIGHUP stopped a race; finished trials are kept."""

    exit_code = 130

    def __init__(self, path: str, done: int, total: int, cure: str = "Go on with --resume") -> None:
        self.path, self.done, self.total = path, done, total
        super().__init__(f"stopped; {done} of {total} trials are kept in {path}. {cure}")


class NothingMeasuredError(VelodromeError):
    """Raised at the end of a race in which no contestant could be measured."""

    def __init__(self, path: str) -> None:
        super().__init__(f"no contestant could be measured; see the reasons above and in {path}")


class ClaimsFailedError(VelodromeError):
    """Raised at the end of a run with `--strict` in which a claim did not hold (exit code 1)."""

    exit_code = 1

    def __init__(self, study: str, claims: Sequence[str]) -> None:
        self.claims = tuple(claims)
        verb = "does" if len(claims) == 1 else "do"
        super().__init__(f"{', '.join(claims)} of {study} {verb} not hold here; see the reasons above")


class OutputError(VelodromeError):
    """Raised when a file of results or a report cannot be written."""

    def __init__(self, path: str, reason: str) -> None:
        full = reason.lower() == os.strerror(errno.ENOSPC).lower()
        cure = "Free some space, or choose another path" if full else "Choose another path"
        super().__init__(f"cannot write {path}: {reason}. {cure}")


class OutputPathError(UsageError):
    """Raised before a load when a file that it is to write cannot be written; `why` is the reason."""

    def __init__(self, option: str, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"{option} {path} cannot be written: {why}. Choose another path; nothing was sent")


class ResultsError(VelodromeError):
    """Raised when a file of results cannot be read: another kind, another schema, or damaged."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        self.path, self.line = path, line
        where = f"{path}, line {line}" if line else path
        super().__init__(f"cannot read {where}: {reason}")


class ResultsInUseError(VelodromeError):
    """Raised when another velodrome is writing the same file of results."""

    def __init__(self, path: str) -> None:
        super().__init__(f"another velodrome is writing {path}. Wait for it to end, or choose another --out")


class ResultsExistError(UsageError):
    """Raised when a new run would overwrite the results of an older one."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} exists already; continue it with --resume, or choose another --out")


class StudyChangedError(UsageError):
    """Raised when results are to be resumed or compared under other conditions than they began with."""

    def __init__(self, path: str, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__(
            f"{path} began under other conditions ({'; '.join(differences)}), so it cannot be continued. "
            "Choose another folder with --out, or run the study as it was"
        )


class DifferentMachinesError(UsageError):
    """Raised when results of different machines are to be judged together: their figures cannot be compared."""

    def __init__(self, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__(
            f"these results come from different machines ({'; '.join(differences)}), so they cannot be compared. "
            "Judge them separately"
        )


class OtherStudyError(UsageError):
    """Raised when runs of different studies are to be judged together."""

    def __init__(self, first: str, study: str, other: str, its_study: str) -> None:
        super().__init__(
            f"{first} is a run of {study}, and {other} of {its_study}: only runs of one study are judged together. "
            "Judge each by itself"
        )


class SameTrialsError(UsageError):
    """Raised when a run, or a copy of it, is to be judged together with itself."""

    def __init__(self, first: str, other: str) -> None:
        if first == other:
            super().__init__(f"{first} is given twice, and its trials would count twice. Name it once")
            return
        super().__init__(
            f"{other} holds trials that {first} holds too, and they would count twice. Name only one of the two"
        )


class OtherClaimsError(UsageError):
    """Raised when a run is to be judged by the claims of a study that it is no run of."""

    def __init__(self, claims: str, run: str, study: str) -> None:
        super().__init__(
            f"--claims {claims}: {run} is a run of {study}, which has other questions or contestants. Name the study "
            "that it is a run of"
        )


class UnreadableVerdictError(VelodromeError):
    """Raised when a verdict.json is missing, truncated or of another schema."""

    def __init__(self, path: str, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(f"cannot read {path}: {problem}. Judge the results again: velodrome judge RUN")


class NotTwoSidesError(UsageError):
    """Raised when there is nothing to compare: no common cell, or no questions `before` and `after`."""

    def __init__(self, names: Sequence[str], before: Sequence[str], after: Sequence[str]) -> None:
        if len(names) == 1:
            super().__init__(
                f"the study {names[0]} has no questions 'before' and 'after' to compare; name two runs, or two "
                "revisions with --app"
            )
            return
        cells = [", ".join(side[:4]) or "none" for side in (before, after)]
        super().__init__(
            f"{names[0]} and {names[1]} have no question/contestant in common ({cells[0]}; {cells[1]}), so there is "
            "nothing to compare. Run the same study twice"
        )


class OtherRequestsError(UsageError):
    """Raised when two runs sent an app other requests: what differs is the work, not the app."""

    def __init__(self, question: str, before: Sequence[str], after: Sequence[str]) -> None:
        """`before` and `after`: what the side is called, then its requests."""
        sides = [f"{name} sent {', '.join(requests[:3])}" for name, *requests in (before, after)]
        super().__init__(
            f"{question}: {sides[0]}, {sides[1]}, so they show no difference of the app. Run one of them again with "
            "the requests of the other"
        )


class OtherArrivalsError(UsageError):
    """Raised when two runs loaded at the same rate with different arrivals: their latency differs by that alone."""

    def __init__(self, question: str, load: str, before: Sequence[str], after: Sequence[str]) -> None:
        """`before` and `after`: what the side is called, then its arrivals."""
        sides = [f"{name} had {' and '.join(arrivals)} arrivals" for name, *arrivals in (before, after)]
        super().__init__(
            f"{question} under {load}: {sides[0]}, {sides[1]}, and latency differs by that alone. Run one of them "
            "again with the arrivals of the other"
        )


class CacheError(VelodromeError):
    """Raised when the cache folder cannot be found, created or written."""

    def __init__(self, folder: str, number: int) -> None:
        """`number` is the errno."""
        self.folder, self.reason = folder, os.strerror(number)
        room = "Free some space there, or set" if number in NO_ROOM else "Set"
        super().__init__(
            f"the cache {folder} cannot be written: {self.reason}. {room} VELODROME_CACHE to a folder you may write to"
        )


class NoHomeError(VelodromeError):
    """Raised when the user has no home folder: neither HOME nor the system's list of users names a folder."""

    def __init__(self, uid: int) -> None:
        self.uid = uid
        super().__init__(
            f"no folder for the cache: HOME is not set, and the system has no user with the number {uid}. "
            "Set HOME, or VELODROME_CACHE to a folder you may write to"
        )


class ScratchError(VelodromeError):
    """Raised when there is no folder for temporary files, or it cannot be written."""

    def __init__(self, folder: str, reason: str) -> None:
        self.folder, self.reason = folder, reason
        super().__init__(
            f"temporary files cannot be written into {folder}: {reason}. Free some space there, or set TMPDIR to a "
            "folder you may write to"
        )


class FullError(VelodromeError):
    """Raised when a file system has no room left; `places` are velodrome's own folders on it."""

    def __init__(self, places: Sequence[str], reason: str) -> None:
        self.places, self.reason = tuple(places), reason
        where = " and ".join(places) or "a file system that velodrome writes to"
        super().__init__(
            f"{where} cannot be written: {reason}. Free some space there, or choose another path"
        )


class ExhaustedError(VelodromeError):
    """Raised when the system refuses more of a resource; `limit` is how much the process may have, if known."""

    def __init__(self, what: str, limit: int | None, reason: str) -> None:
        self.what, self.limit, self.reason = what, limit, reason
        most = f" ({limit} at most)" if limit is not None else ""
        super().__init__(f"the system gives velodrome no more {what}{most}: {reason}. {CURES[what]}")


class TerminalError(VelodromeError):
    """Raised when the output of a command cannot be written."""

    def __init__(self, where: str, reason: str) -> None:
        self.where, self.reason = where, reason
        super().__init__(f"cannot write {where}: {reason}. Redirect it to another place")


class BrokenInstallationError(VelodromeError):
    """Raised when a module of velodrome, or a module that it needs, is missing or cannot be loaded."""

    def __init__(self, module: str, reason: str) -> None:
        self.module, self.reason = module, reason
        super().__init__(
            f"the installation of velodrome is incomplete: {module} cannot be loaded: {reason}. Install it again: "
            "python -m pip install --force-reinstall velodrome"
        )


class UnforeseenError(VelodromeError):
    """Raised in place of an unexpected exception, most often a bug. `crash` is the file with its traceback."""

    def __init__(self, kind: str, text: str, crash: str, why_not: str = "") -> None:
        self.kind, self.text, self.crash = kind, text, crash
        fault = f"{kind}: {text}" if text else kind
        where = (
            f"The traceback is in {crash}; please report it"
            if crash
            else f"The traceback could not be written ({why_not})"
        )
        super().__init__(f"velodrome failed unexpectedly ({fault}). {where}")
