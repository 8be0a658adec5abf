"""The answer of a whole diff in a sentence, and what a reader must know beside it."""

from collections.abc import Sequence

from velodrome.judge.differing.sides import Sides
from velodrome.judge.words import listed
from velodrome.model.difference import DIFF_METRICS, Change, Difference
from velodrome.model.quantity import duration, grouped, percent

DRIFT = (
    "These runs were not interleaved, and a machine drifts between two runs: that it may have become faster or slower "
    "is in every interval, and no repeat takes it out. Two revisions raced against each other tell far smaller "
    "differences."
)


def overall(differences: Sequence[Difference]) -> Change:
    """Return the answer of all: one regression is enough."""
    changes = {one.change for one in differences}
    for change in (Change.REGRESSION, Change.IMPROVEMENT):
        if change in changes:
            return change
    return Change.SAME if changes == {Change.SAME} else Change.INSUFFICIENT


def said(change: Change, differences: Sequence[Difference], block_s: float) -> str:
    """Return the answer as a sentence or two."""
    of = {one: [each for each in differences if each.change is one] for one in Change}
    parts = []
    if change is Change.REGRESSION:
        parts.append(f"Regression: {listed([_moved(one) for one in of[change]], most=4)}.")
    if of[Change.IMPROVEMENT]:
        opening = "Improvement" if change is Change.IMPROVEMENT else "Improved"
        parts.append(f"{opening}: {listed([_moved(one) for one in of[Change.IMPROVEMENT]], most=4)}.")
    if change is Change.SAME:
        parts.append(f"No difference beyond {_margins(differences)}.")
    elif of[Change.SAME]:
        count = len(of[Change.SAME])
        parts.append(f"{count} of {len(differences)} figures do not differ beyond their margin.")
    if of[Change.INSUFFICIENT] or not differences:
        parts.append(_insufficient(of[Change.INSUFFICIENT], len(differences), block_s))
    return " ".join(parts)


def _moved(one: Difference) -> str:
    """Return `p99 of gunicorn · gthread +21 % under open-300`."""
    if one.interval is None:
        return f"{one.called} under {one.load} ({one.reason})"
    return f"{one.metric} of {one.called} {change_of(one)} under {one.load}"


def change_of(one: Difference) -> str:
    """Return by how much after differs from before: `+21 %`; of failures in points of the requests."""
    if one.interval is None:
        return ""
    if one.metric == "errors":
        return f"{_signed(one.interval.mid * 100, 2)} points"
    return f"{_signed((one.interval.mid - 1) * 100, 0 if abs(one.interval.mid - 1) >= 0.0995 else 1)} %"


def _signed(value: float, places: int) -> str:
    text = grouped(value, places)
    return text if text.startswith("−") else f"+{text}"


def _margins(differences: Sequence[Difference]) -> str:
    """Return `5 % (p50 10 %, p99 30 %)`: the least margin, and those that are wider."""
    widest: dict[str, float] = {}
    for one in differences:
        if one.metric != "errors":
            widest[one.metric] = max(widest.get(one.metric, 0.0), one.margin)
    if not widest:
        return "the margin of errors"
    least = min(widest.values())
    wider = [
        f"{metric} {percent(widest[metric])}" for metric in DIFF_METRICS if widest.get(metric, least) > least
    ]
    return percent(least) + (f" ({', '.join(wider)})" if wider else "")


def _insufficient(found: Sequence[Difference], of: int, block_s: float) -> str:
    if not found:
        return "Insufficient data: nothing was measured on both sides."
    named = listed(list(dict.fromkeys(one.metric for one in found)))
    opening = f"Insufficient data for {len(found)} of {of} figures ({named})"
    more = [one.more_blocks for one in found if one.more_blocks is not None]
    if not more:
        return f"{opening}: {found[0].reason.rstrip('.')}."
    most, word = max(more), "block" if max(more) == 1 else "blocks"
    tell = f"{most} more {word} needed" + (f" ({duration(most * block_s)})" if block_s else "")
    rest = len(found) - len(more)
    return f"{opening}: {tell}{f'; {rest} of them no number of blocks would tell' if rest else ''}."


def notes(differences: Sequence[Difference], sides: Sides) -> list[str]:
    """Return what a reader must know of all figures together."""
    told = [one for one in differences if one.chance is not None]
    found = []
    if told and not sides.paired:
        found.append(DRIFT)
    unsure = [one for one in told if one.change is Change.INSUFFICIENT and (one.chance or 0.0) < 0.05]
    if unsure:
        verb = "looks" if len(unsure) == 1 else "look"
        found.append(
            f"{len(unsure)} of {len(told)} figures {verb} different by {'its' if len(unsure) == 1 else 'their'} own "
            "interval; of so many looked at, one of twenty does by chance, so that is not called a change."
        )
    return found
