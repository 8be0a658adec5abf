"""A file names what is executed, installed or read, and its user has not allowed it."""

from collections.abc import Sequence

from velodrome.model.errors.root import UsageError

MOST_NAMED = 20


class UntrustedError(UsageError):
    """Raised before anything of it is touched; `named` are sentences such as `executes './x.sh' (contestant old)`."""

    def __init__(self, path: str, named: Sequence[str]) -> None:
        self.path, self.named = path, tuple(named)
        lines = [f"\n  {one}" for one in self.named[:MOST_NAMED]]
        if len(self.named) > MOST_NAMED:
            lines.append(f"\n  and {len(self.named) - MOST_NAMED} more")
        super().__init__(
            f"{path} names what you have not allowed yet, so nothing was run:{''.join(lines)}\n"
            "  Whoever wrote the file decides what that does. If you trust it, allow it with --trust (in Python: "
            "trust=True); it is remembered until one of these changes"
        )
