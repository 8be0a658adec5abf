"""The requests of an app from whichever form its user has them in, and what to say about them.

of(lines=["GET /cart", "GET /cart", "POST /orders {}"])     2 requests, the first with weight 2
of(access_log=Path("access.log"))                           its mix, with its rates and what is left out in `told`
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from velodrome.model.app import Request
from velodrome.model.errors import TwoSourcesError
from velodrome.plan.requests import access_log as logs
from velodrome.plan.requests import file as files
from velodrome.plan.requests import lines as line
from velodrome.plan.requests.lines import SAFE
from velodrome.plan.untrusted import See, refuse

ROOT = Request("GET /")
"""The requests where no source is given."""


@dataclass(frozen=True)
class Asking:
    """The requests, and sentences on where they come from and what is left out."""

    requests: tuple[Request, ...]
    told: tuple[str, ...] = ()
    peak_rps: float | None = None
    """Of the second that has most of an access log."""


def of(
    lines: Sequence[str] = (),
    file: Path | None = None,
    access_log: Path | None = None,
    openapi: Path | None = None,
    methods: Collection[str] = SAFE,
    *,
    see: See = refuse,
) -> Asking:
    """Return the requests; `GET /` where nothing is given. Files of bodies in `lines` are looked for here.

    `see` decides on the files that `file` names and that are not beside it.
    Raises TwoSourcesError where more than one of them is given, and what each of their readers raises.
    """
    given = {"--request": lines, "--requests": file, "--access-log": access_log, "--openapi": openapi}
    named = [option for option, value in given.items() if value]
    if len(named) > 1:
        raise TwoSourcesError(named)
    if file is not None:
        return Asking(files.read(file, see=see))
    if access_log is not None:
        log = logs.read(access_log, methods)
        return Asking(log.requests, tuple(log.sentences()), log.peak_rps)
    if openapi is not None:
        from velodrome.plan.requests import openapi as documents  # noqa: PLC0415 - brings YAML

        document = documents.read(openapi, methods)
        return Asking(document.requests, tuple(document.sentences()))
    return Asking(tuple(_together(line.read_line(text) for text in lines)) or (ROOT,))


def _together(requests: Iterator[Request]) -> Iterator[Request]:
    """Yield each once, with the weight of all that are the same, by a name of its own."""
    found: dict[Request, float] = {}
    for request in requests:
        found[request] = found.get(request, 0.0) + request.weight
    names: set[str] = set()
    for request, weight in found.items():
        name, number = request.name, 1
        while name in names:  # another body at the same path
            number += 1
            name = f"{request.name} ({number})"
        names.add(name)
        yield replace(request, name=name, weight=weight)
