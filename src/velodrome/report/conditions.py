"""What became of conditions on a load: as sentences, and as values for JSON."""

from collections.abc import Sequence
from typing import Any

from velodrome.model import quantity
from velodrome.model.condition import Compared, Decided, written
from velodrome.model.metric import Unit
from velodrome.report.typeset import plural


def sentence(decided: Decided) -> str:
    """Return `Fails: p99 > 50ms. p99 was 61.3 ms, and the limit is 50 ms.`

    Or `Passes: …`, or `Cannot tell: …` with what is missing.
    """
    opening = {True: "Fails", False: "Passes", None: "Cannot tell"}[decided.holds]
    return f"{opening}: {written(decided.condition)}. {'; '.join(map(_told, decided.because))}."


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


def _told(compared: Compared) -> str:
    comparison, figure = compared.comparison, compared.figure
    name = comparison.metric.name
    if figure.value is None:
        return f"{name} was not measured: {figure.missing}"
    at_least = "at least " if figure.lower_bound else ""
    limit = _quantity(comparison.limit, compared)
    said = f"{name} was {at_least}{_quantity(figure.value, compared)}, and the limit is {limit}"
    if compared.holds is None:
        return f"{said}; requests were given up before it: raise --timeout, or look at errors"
    return said


def _quantity(value: float, compared: Compared) -> str:
    if compared.comparison.counted:
        return plural(round(value), "request")
    match compared.comparison.metric.unit:
        case Unit.MILLISECONDS:
            return f"{quantity.short(float(f'{value:.4g}'))} ms"
        case Unit.SHARE:
            return f"{quantity.short(float(f'{value * 100:.3g}'))} %"
        case Unit.RATE:
            return f"{quantity.short(float(f'{value:.4g}'))}/s"
        case _:
            return quantity.short(float(f"{value:.6g}"))
