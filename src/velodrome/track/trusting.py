"""Whether what a file names is allowed: what ships is, what was allowed before is, all else is asked for.

trust = Trust(given=False, ask=None, say=print)
trust.see("mine.toml", of_study(study))     returns, or raises UntrustedError before any of it is touched
"""

from collections.abc import Callable, Sequence

from velodrome.model.files import Named
from velodrome.model.study import Study
from velodrome.plan import finding, named
from velodrome.run.trusted import Trusted

Ask = Callable[[str, Sequence[Named]], bool]
"""Asks the user about what the file at a path names; returns whether it is allowed."""


class Trust:
    """Decides; `given`: the user has allowed all that is named. Without `ask` nobody can be asked."""

    def __init__(self, *, given: bool, ask: Ask | None, say: Callable[[str], None]) -> None:
        self._given, self._ask = given, ask
        self._trusted = Trusted(say)

    def see(self, path: str, things: Sequence[Named]) -> None:
        """Return when all that the file at `path` names is allowed. Raises UntrustedError, CacheError."""
        unknown = self._trusted.unknown(things, path)
        if not unknown:
            return
        if not self._given and (self._ask is None or not self._ask(path, unknown)):
            named.refuse(path, unknown)
        self._trusted.remember(unknown, path)

    def see_study(self, asked: str, study: Study) -> None:
        """Do so with what a study names that was asked for by a name or a path: one that ships is trusted."""
        path = finding.find(asked)
        if not path.resolve().is_relative_to(finding.folder().resolve()):
            self.see(str(path), named.of_study(study))
