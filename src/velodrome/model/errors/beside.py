"""What stands beside a server under test is missing or fails: the simulated third party, databases, programs."""

from collections.abc import Sequence

from velodrome.model.errors.root import VelodromeError


class UpstreamError(VelodromeError):
    """Raised when the simulated third party does not start, or dies."""

    def __init__(self, reason: str, last_lines: Sequence[str] = ()) -> None:
        self.reason, self.last_lines = reason, tuple(last_lines)
        tail = "".join(f"\n  {line}" for line in last_lines)
        tail = f" Its last lines:{tail}" if tail else ""
        super().__init__(f"the simulated third party cannot serve: {reason}.{tail}")

    @property
    def sentence(self) -> str:
        """What is wrong, without the third party's own lines."""
        return f"the simulated third party cannot serve: {self.reason}"


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
        self._title = title

    @property
    def sentence(self) -> str:
        """What is wrong, without the database's own lines."""
        return f"{self._title} cannot be asked: {self.reason}"


class ProgramError(VelodromeError):
    """Raised when a program of an experiment tells nothing that can be read."""

    def __init__(self, program: str, how: str, last_lines: Sequence[str] = ()) -> None:
        tail = "".join(f"\n  {line}" for line in last_lines)
        super().__init__(f"{program} told nothing: {how}.{tail}")
