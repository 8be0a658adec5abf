"""Answers that hold what another request sent: each request in flight has a name of its own where the app repeats it.

    met = await canary(Where("127.0.0.1", 8000), connections=32)
    met.hits, met.of      # answers with the name of another request; answers with any name

The name stands in headers that identify a request (X-Request-ID, X-Correlation-ID), and in place of those headers and
query parameters of the user's request that the app repeats in its answer: a tenant, for instance. What says who the
client is (Authorization, Cookie, what is called a token) stays as it is, and so does what the transfer depends on.
"""

import asyncio
import re
import secrets
import time
from collections import Counter
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from velodrome.model.diagnosis import Met
from velodrome.model.secrets import names_secret
from velodrome.run.instruments.clients import Answer, Client, Where, request_once

CANARY = re.compile(r"velodrome-[0-9a-f]{16}")
IDENTIFY = ("X-Request-ID", "X-Correlation-ID", "X-Velodrome-Canary")
KEPT = re.compile(
    r"accept(-.*)?|authorization|connection|content-.*|cookie|expect|host|if-.*|keep-alive|origin|range|referer|te|"
    r"trailer|transfer-encoding|upgrade|user-agent|x-forwarded-.*",
    re.IGNORECASE,
)
"""Headers that are not given a name, nor are those with the name of a secret."""
MOST, MOST_S = 8, 2.0
"""Headers and parameters that are tried, and for how long."""


@dataclass(frozen=True)
class Carrier:
    """A place in a request that a name can stand in."""

    kind: str
    """`header`, or `parameter` of the query."""
    name: str
    """Of a header in small letters."""


def carrying(at: Where, carriers: frozenset[Carrier], own: str) -> Where:
    """Return the request with a name in these places."""
    headers = tuple(
        (name, own if Carrier("header", name.lower()) in carriers else value) for name, value in at.headers
    )
    parts = urlsplit(at.path)
    if any(carrier.kind == "parameter" for carrier in carriers):
        pairs = [
            (name, own if Carrier("parameter", name) in carriers else value)
            for name, value in parse_qsl(parts.query, keep_blank_values=True)
        ]
        parts = parts._replace(query=urlencode(pairs, quote_via=quote))
    return replace(at, path=urlunsplit(parts), headers=headers)


async def find_carriers(at: Where) -> frozenset[Carrier]:
    """Return where the app takes a name that it does not know, and repeats it in a right answer."""
    at = at.filled()
    candidates = [
        *(Carrier("header", name.lower()) for name, _ in at.headers if not KEPT.fullmatch(name)),
        *(Carrier("parameter", name) for name, _ in parse_qsl(urlsplit(at.path).query)),
    ]
    may = [carrier for carrier in dict.fromkeys(candidates) if not names_secret(carrier.name)]
    found, until = set[Carrier](), time.monotonic() + MOST_S
    for carrier in may[:MOST]:
        if (left_s := until - time.monotonic()) <= 0:
            break
        own = _new()
        answer = await request_once(carrying(replace(at, expected=None), frozenset({carrier}), own), left_s)
        if answer.outcome == "ok" and own in names_in(answer):
            found.add(carrier)
    return frozenset(found)


async def canary(at: Where, connections: float, requests: float = 200, seconds: float = 1.5) -> Met:
    """Give each request a name of its own, and look for those of others in the answers."""
    carriers = await find_carriers(at)
    given = {name.lower() for name, _ in at.headers}
    identify = [name for name in IDENTIFY if name.lower() not in given]
    until = time.monotonic() + seconds
    each = max(int(requests / connections), 1)
    foreign: list[Answer] = []
    named: list[Answer] = []
    known: set[str] = set()

    async def asking() -> None:
        async with Client(at) as client:
            for _ in range(each):
                if time.monotonic() > until or client.has_ended:
                    return
                own = _new()
                known.add(own)
                named_so = carrying(at.filled(), carriers, own).with_headers(**dict.fromkeys(identify, own))
                answer = await client.request(named_so.request)
                found = names_in(answer)
                if found:
                    named.append(answer)
                if found - {own} & known:
                    foreign.append(answer)

    await asyncio.gather(*(asking() for _ in range(int(connections))))
    sentence = "an answer holds what another request sent"
    return Met(len(foreign), len(named), Counter(one.outcome for one in named), {}, sentence)


def names_in(answer: Answer) -> set[str]:
    """Return the names that an answer holds, in its body or its headers."""
    texts = [answer.body.decode("latin-1"), *answer.headers.values()]
    return {one for text in texts for one in CANARY.findall(text)}


def _new() -> str:
    return f"velodrome-{secrets.token_hex(8)}"
