"""Race Python network services under controlled conditions, also without the command line (docs/python.md).

    import velodrome as vd

    r = vd.load("http://127.0.0.1:8000/", rate=200)
    assert r.p99 < vd.ms(50)

What is named here is imported when it is first used: `import velodrome` alone takes no time.
"""

TYPE_CHECKING = False  # typing's own, without typing: a load must not wait for it
if TYPE_CHECKING:
    from typing import Any

    from velodrome.api.apps import requests as requests
    from velodrome.api.diagnosing import diagnose as diagnose
    from velodrome.api.loads import load as load
    from velodrome.api.runs import compare as compare
    from velodrome.api.runs import diff as diff
    from velodrome.api.runs import race as race
    from velodrome.api.runs import read as read
    from velodrome.api.searching import capacity as capacity
    from velodrome.api.searching import tune as tune
    from velodrome.model.condition import mb as mb
    from velodrome.model.condition import ms as ms
    from velodrome.model.condition import per_second as per_second
    from velodrome.model.condition import percent as percent
    from velodrome.model.condition import seconds as seconds
    from velodrome.model.condition import us as us
    from velodrome.model.errors import InsufficientDataError as InsufficientDataError
    from velodrome.model.errors import VelodromeError as VelodromeError

_WHERE = {
    "load": "api.loads",
    "race": "api.runs",
    "read": "api.runs",
    "compare": "api.runs",
    "capacity": "api.searching",
    "tune": "api.searching",
    "diff": "api.runs",
    "diagnose": "api.diagnosing",
    "requests": "api.apps",
    **dict.fromkeys(("ms", "seconds", "us", "percent", "per_second", "mb"), "model.condition"),
    **dict.fromkeys(("InsufficientDataError", "VelodromeError"), "model.errors"),
}
__all__ = [
    "InsufficientDataError",
    "VelodromeError",
    "capacity",
    "compare",
    "diagnose",
    "diff",
    "load",
    "mb",
    "ms",
    "per_second",
    "percent",
    "race",
    "read",
    "requests",
    "seconds",
    "tune",
    "us",
]


def __getattr__(name: str) -> "Any":
    if name not in _WHERE:
        raise AttributeError(f"module 'velodrome' has no attribute '{name}'")
    import importlib  # noqa: PLC0415 - see above

    from velodrome.run.faults import refusals  # noqa: PLC0415

    with refusals():
        return getattr(importlib.import_module(f"velodrome.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(
        {*__all__, *(name for name in globals() if name.startswith("__"))} - {"__getattr__", "__dir__"}
    )
