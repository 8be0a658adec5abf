"""An option that is given as text or as a file: `--body '{"a": 1}'`, `--body @body.json`."""

from __future__ import annotations

import os

from velodrome.model.errors import UsageError


def read(option: str, text: str | None, folder: os.PathLike[str] | str = "") -> bytes | None:
    """Return what `text` stands for: itself, or after `@` the contents of a file in `folder`.

    Raises UsageError for a file that cannot be read.
    """
    if text is None:
        return None
    if not text.startswith("@"):
        return text.encode()
    try:
        with open(os.path.join(folder, text[1:]), "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{option}: cannot read {text[1:]}: {error.strerror}") from error


def read_text(option: str, text: str | None) -> str | None:
    """Return the same as text. Raises UsageError also for a file that is none."""
    found = read(option, text)
    try:
        return None if found is None else found.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{option}: {(text or '')[1:]} is not text (UTF-8): {error.reason}") from error
