"""Stacks as a file for https://www.speedscope.app (its file-format-schema.json), which opens it without sending it."""

import json
from collections.abc import Mapping
from typing import Any

from velodrome.model import parts
from velodrome.model.profile import Stack

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def document(stacks: Mapping[Stack, int], name: str, rate_hz: float) -> str:
    """Return the file: one profile for each process, its weights in seconds."""
    numbers: dict[str, int] = {}
    by_process: dict[str, list[tuple[Stack, int]]] = {}
    for stack, count in stacks.items():
        by_process.setdefault(stack[0], []).append((stack[1:], count))
    profiles = [_profile(process, seen, numbers, rate_hz) for process, seen in by_process.items()]
    frames = [{"name": frame, "file": parts.path_of(frame)} for frame in numbers]
    return json.dumps(
        {
            "$schema": SCHEMA,
            "name": name,
            "exporter": "velodrome",
            "shared": {"frames": frames},
            "profiles": profiles,
        }
    )


def _profile(
    process: str, seen: list[tuple[Stack, int]], numbers: dict[str, int], rate_hz: float
) -> dict[str, Any]:
    weights = [round(count / rate_hz, 6) for _, count in seen]
    return {
        "type": "sampled",
        "name": process,
        "unit": "seconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [[numbers.setdefault(frame, len(numbers)) for frame in stack] for stack, _ in seen],
        "weights": weights,
    }
