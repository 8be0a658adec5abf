"""Load that is not allowed, or that this machine cannot carry."""

from __future__ import annotations

from velodrome.model.errors.root import UsageError, VelodromeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class LoadRefusedError(UsageError):
    """Raised when load is asked on a host that is neither this machine nor named with `--allow-target`."""


class EngineError(VelodromeError):
    """Raised when this machine cannot carry the load asked for: file descriptors, ports, memory."""


class IdleError(VelodromeError):
    """Raised when idle connections cannot be held from this machine at all."""

    def __init__(self, reason: str, last_lines: Sequence[str] = ()) -> None:
        tail = "".join(f"\n  {line}" for line in last_lines)
        tail = f" Its last lines:{tail}" if tail else ""
        super().__init__(
            f"idle connections cannot be held: {reason}.{tail} Raise the limit of open files (ulimit -n), or ask "
            "for fewer"
        )


class NothingAnsweredError(VelodromeError):
    """Raised when a search cannot begin, because the server answers nothing right even when asked alone."""

    exit_code = 1

    def __init__(self, url: str, example: str) -> None:
        said = f": {example}" if example else ""
        super().__init__(
            f"nothing was answered right by {url}{said}. Check it with: velodrome load {url} -n 1"
        )
