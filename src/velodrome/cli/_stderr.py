"""What commands write on standard error while they work, and the exit codes they end with beside 0.

Nothing is imported at the top that the first request of `velodrome load` does not need.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from typing import Any

    from velodrome.model.search import Ending, Probe, Sample
    from velodrome.model.tuning import TuneEnding

FAILED = 1
"""A condition holds, a threshold is broken, a claim does not hold, or an SLO never holds."""
CANNOT_TELL = 4
"""None of that, but it is undecided whether a condition is true. `main` sets the exit codes of errors."""


def of_search(ending: Ending) -> int:
    """Return the exit code of a search: for the highest rate, or for enough connections."""
    from velodrome.model.search import Ending  # noqa: PLC0415 - see the module

    return {Ending.CONVERGED: 0, Ending.NEVER: FAILED}.get(ending, CANNOT_TELL)


def of_tuning(ending: TuneEnding) -> int:
    """Return the exit code of a search among settings."""
    from velodrome.model.tuning import TuneEnding  # noqa: PLC0415 - see the module

    return {TuneEnding.SETTLED: 0, TuneEnding.NEVER: FAILED}.get(ending, CANNOT_TELL)


def tell(sentence: str) -> None:
    """Write what goes on to standard error."""
    from velodrome.report.typeset import visible  # noqa: PLC0415 - see the module

    for line in sentence.splitlines():
        _write(visible(line))


def _write(line: str) -> None:
    # At once, its end included: environments are made by several threads, which tell what they do.
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class NumberedLines:
    """Writes one numbered line for each load of a search."""

    def __init__(self) -> None:
        self._number = 0

    def preparing(self, text: str) -> None:
        """Write what is done before the first."""
        for line in text.splitlines():
            tell(f"      {line}")

    def line(self, line: str) -> None:
        """Write a line."""
        self._number += 1
        _write(f" {self._number:>3}  {line}")


class UrlSearchLines(NumberedLines):
    """Writes each load of a search at a URL."""

    def tried(self, probe: Probe, document: dict[str, Any]) -> None:
        """Write a rate."""
        from velodrome.report import searches  # noqa: PLC0415 - see the module

        self.line(searches.probe_line(probe, document["latency_ms"]["due"]["p99"]))

    def sampled(self, sample: Sample, document: dict[str, Any]) -> None:
        """Write a closed loop."""
        from velodrome.report import searches  # noqa: PLC0415 - see the module

        self.line(searches.sample_line(sample, document["latency_ms"]["sent"]["p50"]))
