"""An app that tells everybody all it is given, in every way a program does, and then dies of it.

Where LEAKY_AT_ONCE is set, when it is imported; else after so many requests, with a traceback that has it all in it.
"""

import base64
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote, quote_plus

REQUESTS = 60
served: list[str] = []
given = {name: value for name, value in os.environ.items() if name.startswith("LEAKY")}


def forms(text: str) -> list[str]:
    data = text.encode()
    encoded = base64.b64encode(data).decode()
    return [
        text,
        quote(text, safe=""),
        quote_plus(text).replace("%2B", "%2b"),
        json.dumps(text),
        encoded,
        encoded.rstrip("="),
        base64.urlsafe_b64encode(b"user:" + data).decode().rstrip("="),
        base64.b64encode(b"me:" + data + b":more").decode(),
        f"\x1b[31m{text}\x1b[0m",
    ]


def tell(texts: Iterable[str]) -> None:
    for text in texts:
        print(*forms(text), sep=" | ", file=sys.stderr, flush=True)


def die(texts: list[str]) -> None:
    try:
        raise RuntimeError(f"cannot serve {texts!r}")
    except RuntimeError:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)


if "LEAKY_AT_ONCE" in os.environ:
    tell(given.values())
    raise RuntimeError("cannot start with " + " ".join(given.values()))


def application(environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
    served.append(environ["PATH_INFO"])
    values = [value for name, value in environ.items() if name.startswith("HTTP_") and isinstance(value, str)]
    values.append(environ["PATH_INFO"] + "?" + environ["QUERY_STRING"])
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode()
    values += [body] if body else []
    if len(served) % 20 == 1 or len(served) > REQUESTS:
        tell([*given.values(), *values])
    if len(served) > REQUESTS:
        die([*given.values(), *values])
    wrong = environ["PATH_INFO"] == "/echo"
    answer = " ".join(values if wrong else ["fine"]).encode()
    start_response("500 No" if wrong else "200 OK", [("Content-Length", str(len(answer)))])
    return [answer]
