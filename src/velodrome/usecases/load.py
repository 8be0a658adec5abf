"""One load on a server that runs already, carried by the engine in this process, and what limited it.

    document = load(Work(LoadSpec(url="http://127.0.0.1:8000/", rate=500, duration_s=10)), on_event)

Nothing is imported at the top that the first request does not need: `velodrome load` begins with it. What looks at the
server is imported at the first tick, a fifth of a second later.
"""

from __future__ import annotations

from velodrome.run import engine

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from velodrome.model.condition import Condition, Decided
    from velodrome.model.diagnosis import Suspected
    from velodrome.run.engine import LoadSpec
    from velodrome.run.idle_clients import Idle
    from velodrome.run.measuring.kernel import Serving

    Document = dict[str, Any]
    OnEvent = Callable[[Mapping[str, Any]], bool]


class Work:
    """A load, with `idle` connections held open beside it, on which nothing is sent.

    `notes` say in what the load differs from what the user wrote. `agents` carry it (`usecases/cluster_load.py`), with
    the certificates in the folder `keys`; None: this process does.
    """

    __slots__ = ("agents", "idle", "keys", "notes", "spec")

    def __init__(
        self,
        spec: LoadSpec,
        idle: int = 0,
        notes: Sequence[str] = (),
        agents: str | None = None,
        keys: str | None = None,
    ) -> None:
        self.spec, self.idle, self.notes, self.agents, self.keys = spec, idle, notes, agents, keys


def load(work: Work, on_event: OnEvent) -> Document:
    """Carry a load and return its document, with `server` and `limit`.

    `on_event` gets each event of the engine; when it returns False the load ends early. Raises what `engine.load` does.
    """
    if work.agents is not None:
        from velodrome.usecases import cluster_load  # noqa: PLC0415 - see the module

        return cluster_load.load(work, on_event)
    if not work.idle:
        return measure(work.spec, on_event)
    from dataclasses import asdict  # noqa: PLC0415 - see the module

    with beside_idle(work) as held:
        document = measure(work.spec, on_event)
        if held is not None:
            document["idle"] = asdict(held.facts())
    return document


def measure(spec: LoadSpec, on_event: OnEvent) -> Document:
    """Carry a load once, and return its document."""
    watch = _Watch(spec, on_event)
    document = engine.load(spec, watch.event)
    return document | watch.conclude(document)


def beside_idle(work: Work) -> AbstractContextManager[Idle | None]:
    """Hold the idle connections of a load, if there are any."""
    if not work.idle:
        from contextlib import nullcontext  # noqa: PLC0415 - see the module

        return nullcontext()
    from velodrome.run import idle_clients  # noqa: PLC0415

    return idle_clients.hold_idle(work.idle, work.spec.url, allow=work.spec.allow_target)


def decide_conditions(conditions: Sequence[Condition], document: Mapping[str, Any]) -> tuple[Decided, ...]:
    """Return for each condition whether it holds in a load."""
    if not conditions:
        return ()
    from velodrome.judge.load_figures import figures  # noqa: PLC0415 - see the module
    from velodrome.model.condition import decide  # noqa: PLC0415

    look_up = figures(document)
    return tuple(decide(condition, look_up) for condition in conditions)


class _Watch:
    """Samples the threads of a server on this machine, from the first tick or the end of the warm-up on."""

    def __init__(self, spec: LoadSpec, on_event: OnEvent) -> None:
        # Where connections go elsewhere than the URL says, another process has the URL's port.
        self._elsewhere = bool(spec.unix or spec.connect_to)
        self._url = spec.url
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
        from velodrome.run.measuring.kernel import who_serves  # noqa: PLC0415 - see the module

        self._looked = True
        self._serving = None if self._elsewhere else who_serves(self._url)
        if self._serving is not None:
            self._serving.begin()

    def conclude(self, document: Mapping[str, Any]) -> Document:
        """Return the fields `server`, `limit` and `suspects` of a load's document."""
        from dataclasses import asdict  # noqa: PLC0415 - see the module

        from velodrome.judge.bottleneck import bottleneck, evidence  # noqa: PLC0415
        from velodrome.run.machine.facts import usable_cpus  # noqa: PLC0415

        use = self._serving.use() if self._serving is not None else None
        found = bottleneck(evidence(document, use, len(usable_cpus())))
        report = {"server": asdict(use) if use is not None else None, "limit": asdict(found)}
        return report | {"suspects": [asdict(suspect) for suspect in suspects({**document, **report})]}


APP = "APP"
"""Stands for what only the user knows: which app answers behind a URL."""


def suspects(document: Mapping[str, Any]) -> Sequence[Suspected]:
    """Return which faults of the doctor's catalogue a load makes likely, and how to prove each."""
    from velodrome.model.symptoms import symptoms_of_load  # noqa: PLC0415 - see the module

    seen = symptoms_of_load(document)
    if seen.reused is None:
        return ()  # nothing else of it shows anything
    from velodrome.diagnoses.fault import glances  # noqa: PLC0415
    from velodrome.model.diagnosis import Suspected  # noqa: PLC0415

    return [
        Suspected(name, "what answers there", why, f"velodrome doctor {APP} --only {name}")
        for name, why in glances(seen).items()
    ]
