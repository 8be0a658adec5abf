"""Ask a server each request of a mix once, by the engine, which fills in templates, and tell what it answered."""

import time

from velodrome.model.app import Request
from velodrome.run.asking.answer import UNFINISHED, Partly, Words, Wrong
from velodrome.run.asking.once import once
from velodrome.run.drivers import mix
from velodrome.run.drivers.driver import Target

WORDS = Words(foreign="what it answers is not HTTP: ", silent="handshake", broken="the connection breaks")
ENOUGH = 0.5
"""Share of the mix, by weight, that has to be answered right: below, its load would be one of failures. What fails of
the rest is told, and counted by the load: an item of a log may be gone from the database that is asked.
"""


def ask(target: Target, timeout_s: float) -> str | Wrong | Partly | None:
    """Ask each once: None where all is answered right, what is wrong of it, or why there is no answer."""
    until = time.monotonic() + timeout_s
    wrong: list[tuple[float, str]] = []
    for request in target.mix:
        left_s = until - time.monotonic()
        if left_s <= 0:
            return UNFINISHED
        answer = _ask_one(target, request, left_s)
        if isinstance(answer, str):
            return answer
        if isinstance(answer, Wrong):
            wrong.append((request.weight, f"{request.name}: {answer.what}"))
    if not wrong:
        return None
    most = max(wrong)[1]
    what = most if len(wrong) == 1 else f"{most} ({len(wrong)} of {len(target.mix)} requests are wrong)"
    lost = sum(weight for weight, _ in wrong)
    enough = lost <= (1 - ENOUGH) * sum(request.weight for request in target.mix)
    return Partly(what) if enough else Wrong(what)


def _ask_one(target: Target, request: Request, timeout_s: float) -> str | Wrong | None:
    asked = {"mix": mix.document([request]), "template": request.has_templates}
    return once(target, asked, WORDS, timeout_s)
