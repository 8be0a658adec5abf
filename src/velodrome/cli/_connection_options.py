"""The options of `velodrome load` that say where connections go and how they are made."""

from __future__ import annotations

from velodrome.cli._declared import Annotated, Option
from velodrome.model.errors import UsageError

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

Unix = Annotated[
    str | None,
    Option(metavar="PATH", help="Connect to this unix socket; or write http+unix://%2Frun%2Fapp.sock/path."),
]
ConnectTo = Annotated[
    list[str] | None,
    Option(help="HOST:PORT:ADDRESS:PORT: connect there instead, as curl does; repeatable."),
]
Http2 = Annotated[
    bool, Option("--http2", help="HTTP: speak HTTP/2, over http:// without asking; -m streams at once.")
]
Sni = Annotated[str | None, Option(help="TLS: the name asked for, which the certificate must have.")]
Alpn = Annotated[
    list[str] | None,
    Option(help="TLS: a protocol offered (the one spoken); repeatable; 'none' offers nothing."),
]
Cert = Annotated[
    str | None,
    Option(metavar="PATH", help="TLS: our own certificate (PEM), for a server that wants one."),
]
Key = Annotated[
    str | None, Option(metavar="PATH", help="TLS: its key (PEM); in the same file where left out.")
]
TlsMin = Annotated[str | None, Option(one_of=("1.2", "1.3"), help="TLS: the least version (1.2).")]


def spec(unix: str | None, connect_to: Sequence[str] | None, idle: int, url: str) -> dict[str, Any]:
    """Return where connections go. Raises UsageError for idle connections, which go to the URL's host only."""
    elsewhere = unix is not None or connect_to or "+unix://" in url.lower()
    if idle and elsewhere:
        raise UsageError("--idle holds connections to the host of the URL: leave out --unix and --connect-to")
    return {"unix": unix, "connect_to": list(connect_to or ())}


def tls(
    url: str,
    sni: str | None,
    alpn: Sequence[str] | None,
    cert: str | None,
    key: str | None,
    least: str | None,
) -> dict[str, Any]:
    """Return what the engine takes as `tls`. Raises UsageError where none is spoken, and for protocols beside none."""
    given = {"--sni": sni, "--alpn": alpn, "--cert": cert, "--key": key, "--tls-min": least}
    for option, value in given.items():
        if value and not _is_secure(url):
            raise UsageError(f"{option} is about TLS, and {url} has none: write https://, grpcs:// or wss://")
    if alpn and "none" in alpn and len(alpn) > 1:
        raise UsageError("--alpn none offers nothing: leave out the others")
    return {
        "sni": sni,
        "alpn": None if not alpn else [name for name in alpn if name != "none"],
        "cert": cert,
        "key": key,
        "minimum": least or "1.2",
    }


def _is_secure(url: str) -> bool:
    scheme = url.partition("://")[0].lower().removesuffix("+unix")
    return scheme in ("https", "grpcs", "wss")
