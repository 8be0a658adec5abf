"""A bound on how much worse a figure may become: `p99 +10%`, `throughput -5%`, `errors +0.1%`."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from velodrome.model.errors import ThresholdError

_FORM = re.compile(r"\s*(?P<metric>[a-z][a-z0-9.]*)\s*(?P<sign>[+-])?\s*(?P<percent>\d+(?:\.\d+)?)\s*%\s*")
_MARGIN = re.compile(r"\s*(?:(?P<metric>[a-z][a-z0-9.]*)\s*=\s*)?(?P<percent>\d+(?:\.\d+)?)\s*%\s*")


@dataclass(frozen=True)
class Threshold:
    """The metric may become worse by so much, and no more."""

    metric: str
    share: float
    """Above 0; of `errors` a share of the requests."""
    text: str
    """As it was written."""


def threshold(text: str, worse: dict[str, str]) -> Threshold:
    """Read one. `worse` is the sign of each known metric where it becomes worse. Raises ThresholdError."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise ThresholdError(text, "write a metric and by how much it may become worse: 'p99 +10%'")
    metric, sign = match["metric"], match["sign"]
    _known(text, metric, worse)
    if sign and sign != worse[metric]:
        raise ThresholdError(
            text, f"{metric} becomes worse with {worse[metric]}: write '{metric} {worse[metric]}10%'"
        )
    return Threshold(metric, _share(text, match["percent"], metric), text.strip())


def margins(texts: Collection[str], known: Collection[str]) -> dict[str, float]:
    """Read margins: `5%` for all metrics but errors, `p99=20%` for one. Raises ThresholdError."""
    found: dict[str, float] = {}
    own: dict[str, float] = {}
    for text in texts:
        match = _MARGIN.fullmatch(text)
        if match is None:
            raise ThresholdError(text, "write a margin as 5%, or for one metric as p99=20%")
        metric = match["metric"]
        if metric is None:
            # Errors are shares of all requests: 5 % of them is no small difference.
            found |= {name: _share(text, match["percent"], name) for name in known if name != "errors"}
        else:
            _known(text, metric, known)
            own[metric] = _share(text, match["percent"], metric)
    return found | own


def _known(text: str, metric: str, known: Collection[str]) -> None:
    if metric not in known:
        raise ThresholdError(text, f"'{metric}' is not compared; these are: {', '.join(known)}")


def _share(text: str, percent: str, metric: str) -> float:
    share = float(percent) / 100
    if share <= 0:
        raise ThresholdError(text, "0 % is less than anything measured can differ by: give more")
    if share >= 1 and metric in {"throughput", "errors"}:
        raise ThresholdError(text, f"{metric} cannot become worse by {percent} %")
    return share
