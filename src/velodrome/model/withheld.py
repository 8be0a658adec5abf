"""What results never hold: values of headers that may be secrets. Their names are kept, in the place of a value a mark.

What is stored and shown of a request is `withheld(request, names)`; what is sent is the request itself, which the lab
has (`run/lab.py`), as it has the values of environment variables.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from velodrome.model.errors import WithheldHeaderError
from velodrome.model.request import Request

MARK = "•••"
"""In the place of a value."""
SECRET = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})
"""Headers whose values are withheld whoever gave them."""


def withheld(request: Request, names: Collection[str] = ()) -> Request:
    """Return a request as it may be stored and shown: without the values of secret headers and of those in `names`."""
    secret = SECRET.union(name.lower() for name in names)
    headers = tuple((name, MARK if name.lower() in secret else value) for name, value in request.headers)
    return replace(request, headers=headers) if headers != request.headers else request


def unmarked(request: Request, names: Collection[str]) -> Request:
    """Return a request without the marks of headers that are given beside it."""
    beside = {name.lower() for name in names}
    kept = tuple(one for one in request.headers if one[1] != MARK or one[0].lower() not in beside)
    return replace(request, headers=kept)


def whole(requests: Sequence[Request]) -> tuple[Request, ...]:
    """Return requests of which nothing is withheld. Raises WithheldHeaderError: they would be sent with marks."""
    for one in requests:
        for name, value in one.headers:
            if value == MARK:
                raise WithheldHeaderError(one.name, name)
    return tuple(requests)
