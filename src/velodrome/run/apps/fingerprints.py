"""How a request of which a part is withheld is known again: by a fingerprint that says nothing of what it holds.

It is an HMAC under a key of this user, which lies in the cache and in no results: whoever has the results alone cannot
try values until one fits.
"""

import hashlib
import hmac
import json
import os
import secrets as chance
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from velodrome.model.app import Request, withheld
from velodrome.model.errors import OutputError
from velodrome.run import cache

FOLDER, NAME = "secrets", "fingerprint.key"
KEY_BYTES = 32
LENGTH = 24
"""Hexadecimal digits of a fingerprint, behind KNOWN of its key and a colon."""
KNOWN = 8


def sealed(request: Request, names: Collection[str] = ()) -> Request:
    """Return a request as it may be stored and shown, with its fingerprint where something of it is withheld."""
    shown = withheld(request, names)
    return shown if shown == request else replace(shown, fingerprint=of(request))


def of(request: Request) -> str:
    """Return the fingerprint of a whole request: of its key, and of itself. Raises OutputError."""
    key = _key()
    text = json.dumps(asdict(replace(request, fingerprint="")), sort_keys=True).encode()
    return f"{_digest(key, b'key')[:KNOWN]}:{_digest(key, text)[:LENGTH]}"


def _digest(key: bytes, text: bytes) -> str:
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def _key() -> bytes:
    """Return the key of this user, made at first use; only they can read it."""
    path = cache.folder(FOLDER) / NAME
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = b""
    if len(key) == KEY_BYTES:
        return key
    try:
        return _made(path, torn=bool(key))
    except OSError as error:
        raise OutputError(str(path), os.strerror(error.errno or 0)) from error


def _made(path: Path, *, torn: bool) -> bytes:
    # Written whole under a name of its own: of two that begin at once, both take the one that was linked first.
    own = path.with_name(f"{NAME}.{os.getpid()}.{chance.token_hex(4)}")
    number = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(number, chance.token_bytes(KEY_BYTES))
        os.fsync(number)
        if torn:
            os.replace(own, path)
        else:
            with suppress(FileExistsError):  # another was first
                os.link(own, path)
    finally:
        os.close(number)
        own.unlink(missing_ok=True)
    return path.read_bytes()
