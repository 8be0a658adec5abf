"""«Was it the generator or the server?»: what a load is watched by, and the answer in its document.

What looks is imported at the first tick, a fifth of a second after the first request, which must not wait for it.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from velodrome.run.measuring.listeners import Serving


class Watch:
    """Looks at the threads of a server on this machine from the first tick, or the end of the warm-up, on."""

    def __init__(self, spec: Mapping[str, Any], on_event: Callable[[Mapping[str, Any]], bool]) -> None:
        # Where connections go elsewhere than the URL says, whoever has its port is somebody else.
        self._elsewhere = bool(spec.get("unix") or spec.get("connect_to"))
        self._url = str(spec["url"])
        self._on_event = on_event
        self._looked = False
        self._serving: Serving | None = None

    def event(self, event: Mapping[str, Any]) -> bool:
        """Take an event of the engine, and hand it on."""
        kind = event["event"]
        if kind == "tick" and not self._looked and event["phase"] != "drain":
            self._look()
        elif self._serving is not None and kind == "measuring":
            self._serving.begin()
        elif self._serving is not None and kind == "span_ended":
            self._serving.end()
        return self._on_event(event)

    def _look(self) -> None:
        from velodrome.run.measuring.listeners import who_serves  # noqa: PLC0415

        self._looked = True
        self._serving = None if self._elsewhere else who_serves(self._url)
        if self._serving is not None:
            self._serving.begin()

    def conclude(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields `server` and `limit` for a load's document."""
        from dataclasses import asdict  # noqa: PLC0415

        from velodrome.judge.bottleneck import bottleneck, evidence  # noqa: PLC0415
        from velodrome.run.machine.facts import usable_cpus  # noqa: PLC0415

        use = self._serving.use() if self._serving is not None else None
        found = bottleneck(evidence(document, use, len(usable_cpus())))
        return {"server": asdict(use) if use is not None else None, "limit": asdict(found)}
