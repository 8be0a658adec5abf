"""What a comparison came to, in words: `p99 was 61.3 ms, and the limit is 50 ms`."""

from velodrome.model import quantity
from velodrome.model.condition import Compared, Decided
from velodrome.model.metric import Unit


def said(compared: Compared) -> str:
    """Return figure and limit, or why there is no figure; a sentence without its end."""
    comparison, figure = compared.comparison, compared.figure
    name = comparison.metric.name
    if figure.value is None:
        return f"{name} was not measured: {figure.missing}"
    at_least = "at least " if figure.lower_bound else ""
    limit = _quantity(comparison.limit, compared)
    found = f"{name} was {at_least}{_quantity(figure.value, compared)}, and the limit is {limit}"
    if figure.but:
        return f"{found}; but {figure.but}"
    if compared.holds is None:
        return (
            f"{found}; requests were given up before it: raise --timeout (--drain for those under way at the end), "
            "or look at errors"
        )
    return found


def because(decided: Decided) -> str:
    """Return what decided a condition, all of it."""
    return "; ".join(map(said, decided.because))


def _quantity(value: float, compared: Compared) -> str:
    if compared.comparison.counted:
        return f"{quantity.grouped(round(value))} request{'' if round(value) == 1 else 's'}"
    match compared.comparison.metric.unit:
        case Unit.MILLISECONDS:
            return f"{quantity.short(float(f'{value:.4g}'))} ms"
        case Unit.SHARE:
            return f"{quantity.short(float(f'{value * 100:.3g}'))} %"
        case Unit.RATE:
            return f"{quantity.short(float(f'{value:.4g}'))}/s"
        case _:
            return quantity.short(float(f"{value:.6g}"))
