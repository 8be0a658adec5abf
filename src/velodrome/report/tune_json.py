"""Which setting to deploy, for other programs (`velodrome/tune/1`, docs/tune.schema.json)."""

from dataclasses import asdict
from typing import Any

from velodrome.model.tuning import SCHEMA, Entry, Recommendation
from velodrome.report import capacity_json, pasting, tune_text


def document(found: Recommendation) -> dict[str, Any]:
    """Return it as plain values."""
    tuned = found.tuned
    return {
        "schema": SCHEMA,
        "of": found.of,
        "goal": tuned.goal.value,
        "rate": found.rate or None,
        "conditions": list(found.conditions),
        "limits": asdict(found.limits),
        "ending": tuned.ending.value,
        "because": tuned.because,
        "sentence": tune_text.sentence(found),
        "recommended": _entry(tuned.best, found.title),
        "runner_up": _entry(tuned.runner_up, found.runner_up),
        "candidates": [_entry(one, "") for one in tuned.entries],
        "looks": {name: asdict(look) for name, look in tuned.looks.items()},
        "mind": [asdict(one) for one in found.mind],
        "growth": asdict(found.growth) if found.growth else None,
        "proof": capacity_json.of_measurement(found.proof) if found.proof else None,
        "before": found.before,
        "command": pasting.command_line(found),
        "files": {one.name: one.text for one in pasting.files(found)},
        "trials": tuned.trials,
        "grid_trials": found.grid_trials,
        "seconds": found.seconds,
    }


def _entry(one: Entry | None, called: str) -> dict[str, Any] | None:
    if one is None:
        return None
    contestant = one.candidate.contestant
    return {
        "label": contestant.label,
        **({"called": called} if called else {}),
        "stack": contestant.stack,
        "knobs": dict(contestant.knobs),
        "fate": one.fate.value,
        "why": one.why,
        "trials": one.trials,
        "value": asdict(one.value) if one.value else None,
        "memory_bytes": one.memory_bytes,
        "grew_bytes": one.grew_bytes,
        "forecast": asdict(one.forecast) if one.forecast else None,
    }
