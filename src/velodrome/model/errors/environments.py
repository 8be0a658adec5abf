"""What a contestant is made of cannot be had: uv, an interpreter, an environment."""

from collections.abc import Sequence

from velodrome.model.errors.root import UsageError, VelodromeError


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

    @property
    def sentence(self) -> str:
        """What is wrong and the cure, without the lines of uv."""
        return f"{self.stack} cannot run here: {self.reason}. Cure: {self.cure}"


class CalibrationError(VelodromeError):
    """Raised when an interpreter does not tell how fast it computes."""

    def __init__(self, python: str, reason: str) -> None:
        super().__init__(f"{python} could not be asked how fast it computes: {reason}")
