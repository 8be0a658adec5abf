"""The URL as somebody copies it from where a server prints it.

`http://0.0.0.0:8000` says that a server listens on every address of the machine; it is none to connect to. What is
meant is this machine, so loopback is loaded, and the output says so.
"""

from __future__ import annotations

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - nothing is bound
"""The addresses that stand for all, and loopback of the same kind."""


def of_loopback(url: str) -> tuple[str, str]:
    """Return the URL to load, and a note where it is another than was given (else empty).

    Raises CredentialsInUrlError: here, because the engine, which refuses the same, hears of it when others have shown
    the URL already.
    """
    scheme, between, rest = url.partition("://")
    end = min((at for mark in "/?#" if (at := rest.find(mark)) >= 0), default=len(rest))
    if "@" in rest[:end] and not scheme.endswith("+unix"):
        from velodrome.model.errors import CredentialsInUrlError  # noqa: PLC0415 - most URLs have none

        raise CredentialsInUrlError(url)
    host, port = _parted(rest[:end])
    if not between or host not in EVERYWHERE:
        return url, ""
    loopback = EVERYWHERE[host]
    note = (
        f"{host.strip('[]')} is where a server listens on every address, and none to connect to: "
        f"{loopback.strip('[]')} was loaded."
    )
    return f"{scheme}://{loopback}{port}{rest[end:]}", note


def _parted(authority: str) -> tuple[str, str]:
    """Part `[::]:8000` and `0.0.0.0:8000` before the colon of the port."""
    end = authority.find("]") + 1 or authority.find(":")
    return (authority, "") if end < 0 else (authority[:end], authority[end:])
