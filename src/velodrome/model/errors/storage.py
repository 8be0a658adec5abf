"""Files of results, verdicts and reports: not to be written, read, gone on with or compared."""

from collections.abc import Sequence

from velodrome.model.errors.root import UsageError, VelodromeError


class OutputError(VelodromeError):
    """Raised when a file of results or a report cannot be written."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot write {path}: {reason}. Free some space or choose another place")


class OutputPathError(UsageError):
    """Raised before a load when a file that it is to write cannot be written; `why` is the reason."""

    def __init__(self, option: str, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"{option} {path} cannot be written: {why}. Choose another place; nothing was sent")


class ResultsError(VelodromeError):
    """Raised when a file of results cannot be read: another kind, another schema, or damaged."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        self.path, self.line = path, line
        where = f"{path}, line {line}" if line else path
        super().__init__(f"cannot read {where}: {reason}")


class ResultsInUseError(VelodromeError):
    """Raised when two velodromes are to write one file of results."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is written by another velodrome now. Wait for it, or choose another --out")


class ResultsExistError(UsageError):
    """Raised when a new run would write over the results of an older one."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is there already; go on with it by --resume, or choose another --out")


class StudyChangedError(UsageError):
    """Raised when results are to be resumed or compared under other conditions than they were begun with."""

    def __init__(self, path: str, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__(
            f"{path} was begun under other conditions ({'; '.join(differences)}), so it cannot be continued. "
            "Choose another folder with --out, or run the study as it was"
        )


class DifferentMachinesError(UsageError):
    """Raised when results of different machines were given to one verdict: such figures cannot be compared."""

    def __init__(self, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__(
            f"these results come from different machines ({'; '.join(differences)}); "
            "figures of one machine say nothing about another. Judge them one by one"
        )


class UnreadableVerdictError(VelodromeError):
    """Raised when a verdict.json is asked for that is missing, cut short or of another schema."""

    def __init__(self, path: str, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(f"cannot read {path}: {problem}. Judge the results again: velodrome judge RUN")


class NotTwoSidesError(UsageError):
    """Raised when there is nothing to compare: no cell that both runs have, or no questions `before` and `after`."""

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
