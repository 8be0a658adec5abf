"""`velodrome.compare`: serve an app on every stack that can, and return the run that says which to deploy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from velodrome.api.apps import asked_of
from velodrome.api.asking import Asks, mix_of
from velodrome.api.conditions import limits_of, terms_of
from velodrome.api.racing import raced
from velodrome.api.reading import Run
from velodrome.model.errors import UsageError
from velodrome.run.faults import refusals
from velodrome.track import apps, comparing
from velodrome.track.comparing import Terms

DEFAULTS = Terms()


@refusals()
def compare(
    *app: object,
    requests: Asks = ("GET /",),
    connections: int = DEFAULTS.connections,
    rate: float | None = None,
    duration: float | str = DEFAULTS.seconds,
    blocks: int = DEFAULTS.blocks,
    stacks: Sequence[str] = (),
    cpus: int | None = None,
    memory: str = "",
    link: str = "",
    seed: int = DEFAULTS.seed,
    out: str | Path | None = None,
    wait: bool = False,
    **of_app: Any,
) -> Run:
    """Race one app, or several, on every stack that can serve it: its import path, or the object itself.

    `requests` are such as `"GET /cart?id=7"`, or those of `velodrome.requests`; `stacks` names some instead of all, or
    yours in `./mine.py`; `cpus` and `memory` (`"1g"`) limit the server, `link` (`"rtt=40ms"`) is the network between;
    `of_app` says how it is found and asked: what `asked_of` takes. Each app is a question of the run.

    Raises what is wrong with the app, NoStackFitsError, BusyError and what else keeps it from being run.
    """
    if not app:
        raise UsageError("name an app: compare('shop.wsgi:application')")
    mix = mix_of(requests)
    asked = [asked_of(one, mix, **of_app) for one in app]
    names, extra = apps.named(stacks)
    terms = terms_of(
        limits_of(cpus, memory),
        connections=connections,
        rate=rate,
        duration=duration,
        link=link,
        stacks=names,
        blocks=blocks,
        seed=seed,
    )
    with apps.commands_around(asked[0]):
        found = [apps.look(one) for one in asked]
        lab = apps.lab_for(asked[0], extra)
        comparison = comparing.laid_out(found, terms, lab)
        comparing.rehearse(comparison, lab, wait_s=None if wait else 0.0)
        return raced(comparison.study, comparison.matrix, lab, out, wait)
