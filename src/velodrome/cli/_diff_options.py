"""The options of `velodrome diff` that say what counts as a difference, and in which form it is told."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from velodrome.cli._exit_codes import CANNOT_TELL, FAILED
from velodrome.judge import regression
from velodrome.judge.regression import Asked
from velodrome.model.difference import DIFF_METRICS, Change, Diff

FORMATS = ("text", "markdown", "json", "junit")
Format = Literal["text", "markdown", "json", "junit"]


class FailOn(StrEnum):
    """A change that a command fails on."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"


Thresholds = Annotated[
    list[str] | None,
    typer.Option("--threshold", help="By how much a figure may become worse: 'p99 +10%'. Else exit code 1."),
]
FailsOn = Annotated[
    list[FailOn] | None, typer.Option("--fail-on", help="Exit code 1 on it, 4 if that cannot be told.")
]
Margins = Annotated[
    list[str] | None, typer.Option("--margin", help="A difference below this is none: 5%, or p99=20%.")
]
Metrics = Annotated[
    str, typer.Option("--metrics", help=f"Look only at these: {','.join(DIFF_METRICS)}. Fewer tell sooner.")
]
AsFormat = Annotated[Format, typer.Option("--format", help="How it is told.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write it into this file.")]


def asked(thresholds: Sequence[str] | None, margins: Sequence[str] | None, metrics: str) -> Asked:
    """Return what the options say. Raises ThresholdError."""
    named = [name.strip() for name in metrics.split(",") if name.strip()]
    return regression.asked(thresholds or (), margins or (), named)


@dataclass(frozen=True)
class Telling:
    """In which form a diff is told, and where."""

    form: Format
    out: Path | None

    def tell(self, diff: Diff) -> None:
        """Write it. Raises OutputError."""
        if self.out is None:
            sys.stdout.write(self._text(diff)) if self.form != "text" else self._show(diff)
            return
        from velodrome.report.json import save  # noqa: PLC0415

        save(self.out, self._text(diff))

    def _show(self, diff: Diff) -> None:
        from velodrome.report import diff_text, terminal  # noqa: PLC0415

        diff_text.show(diff, terminal.console(sys.stdout))

    def _text(self, diff: Diff) -> str:
        from velodrome.report import diff_json, diff_junit, diff_markdown, diff_text  # noqa: PLC0415

        match self.form:
            case "markdown":
                return diff_markdown.text(diff)
            case "json":
                return diff_json.text(diff)
            case "junit":
                return diff_junit.text(diff)
            case "text":
                return "".join(f"{line.plain}\n" for line in diff_text.lines(diff, 120))


def exit_code(diff: Diff, fail_on: Sequence[FailOn]) -> int:
    """Return what the command ends with: a broken threshold before one that cannot be told."""
    changes = {one.change for one in diff.differences} or {Change.INSUFFICIENT}
    held = {one.held for one in diff.gates}
    if False in held or changes & {Change(one) for one in fail_on}:
        return FAILED
    if None in held or (fail_on and Change.INSUFFICIENT in changes):
        return CANNOT_TELL
    return 0
