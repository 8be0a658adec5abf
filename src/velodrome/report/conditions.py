"""What became of conditions on a load: as sentences, and as values for JSON."""

from collections.abc import Sequence
from typing import Any

from velodrome.model.condition import Compared, Decided, because, written
from velodrome.model.metric import Unit


def sentence(decided: Decided) -> str:
    """Return `Fails: p99 > 50ms. p99 was 61.3 ms, and the limit is 50 ms.`

    Or `Passes: …`, or `Cannot tell: …` with what is missing.
    """
    opening = {True: "Fails", False: "Passes", None: "Cannot tell"}[decided.holds]
    return f"{opening}: {written(decided.condition)}. {because(decided)}."


def documents(decided: Sequence[Decided]) -> list[dict[str, Any]]:
    """Return the field `conditions` of a load's document."""
    return [
        {
            "condition": written(one.condition),
            "holds": one.holds,
            "because": [
                {
                    "metric": compared.comparison.metric.name,
                    "value": compared.figure.value,
                    "limit": compared.comparison.limit,
                    "unit": _unit(compared),
                    "lower_bound": compared.figure.lower_bound,
                    "missing": compared.figure.missing,
                    "but": compared.figure.but,
                }
                for compared in one.because
            ],
            "sentence": sentence(one),
        }
        for one in decided
    ]


def _unit(compared: Compared) -> str:
    unit = Unit.COUNT if compared.comparison.counted else compared.comparison.metric.unit
    return "share" if unit is Unit.SHARE else unit.value
