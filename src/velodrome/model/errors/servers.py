"""A server cannot be started, held to its limits, profiled or asked."""

import os
from collections.abc import Sequence
from errno import EAGAIN

from velodrome.model.errors.root import UsageError, VelodromeError


class StartRefusedError(VelodromeError):
    """Raised when the kernel refuses to start a process as it was ordered: `stage` says at which step."""

    def __init__(self, stage: str, what: str, errno: int) -> None:
        self.stage, self.what, self.errno = stage, what, errno
        reason = os.strerror(errno) if errno else "see above"
        step = {
            "fork": "there is room for no further "
            + ("process of this user (ulimit -u)" if errno == EAGAIN else "open file (ulimit -n)"),
            "group": f"the control group {what} cannot be used",
            "affinity": f"it cannot be placed on CPU {what}",
            "rlimit": f"the limit {what} is refused",
            "user": f"it cannot become user {what}",
            "cwd": f"the folder {what} cannot be made or entered",
            "exec": f"{what} cannot be executed",
            "warden": f"its supervisor did not come up ({what or 'no output'})",
        }.get(stage, f"{stage} failed")
        super().__init__(f"a process could not be started: {step}: {reason}")


class LimitError(UsageError):
    """Raised when a limit asked for cannot be enforced on this machine; never ignored in silence."""

    def __init__(self, limit: str, reason: str, cure: str) -> None:
        self.limit = limit
        super().__init__(f"the limit {limit} is impossible here: {reason}. {cure}")


class NoPortError(VelodromeError):
    """Raised when no free port was found to start a server on."""

    def __init__(self, host: str, tries: int) -> None:
        super().__init__(
            f"no free port on {host}: {tries} were tried and all are taken or may not be bound. "
            "End what listens there (ss -ltnp shows it)"
        )


class ServerNotReadyError(VelodromeError):
    """Raised when the server of an experiment does not start, or answers wrongly."""

    def __init__(self, stack: str, reason: str, last_lines: Sequence[str] = ()) -> None:
        tail = "".join(f"\n  {line}" for line in last_lines)
        super().__init__(f"{stack} is of no use to this experiment: {reason}.{tail}")


class NoServerError(VelodromeError):
    """Raised when what is to be loaded again and again cannot be served, or not any more.

    `tried`: its server was started, so it may be the app.
    """

    def __init__(
        self, label: str, reason: str, last_lines: Sequence[str] = (), *, tried: bool = True
    ) -> None:
        self.reason, self.last_lines, self.tried = reason, tuple(last_lines), tried
        tail = "".join(f"\n  {line}" for line in last_lines)
        said = reason if reason.startswith(label) else f"{label}: {reason}"
        super().__init__(f"{said.rstrip('.')}." + (f" Its last lines:{tail}" if tail else ""))


class ProfilerError(VelodromeError):
    """Raised when a server cannot be profiled; the race goes on without that profile."""

    def __init__(self, reason: str, cure: str) -> None:
        self.reason, self.cure = reason, cure
        super().__init__(f"py-spy could not sample the server: {reason.rstrip('.')}. {cure}")


class AccountError(UsageError):
    """Raised when foreign code cannot be run as a user."""

    def __init__(self, user: str, reason: str, cure: str) -> None:
        self.user, self.reason = user, reason
        super().__init__(f"nothing can be run as user {user}: {reason}. {cure[:1].upper()}{cure[1:]}")
