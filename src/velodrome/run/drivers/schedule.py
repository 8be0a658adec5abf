"""A rate that changes, as the engine takes it in the field `schedule` of its specification."""

from collections.abc import Sequence
from typing import Any

from velodrome.model.load import Step


def document(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return the field; a step without `to_rate` keeps its rate."""
    return [
        {"rate": step.rate, "duration_s": step.duration_s}
        | ({} if step.to_rate is None else {"to_rate": step.to_rate})
        for step in steps
    ]
