"""The end of what a process printed: its pipe is always drained, and only the last bytes are kept."""

import os
import threading

from velodrome.model import secrets

KEPT_BYTES = 64 * 1024
"""Enough for several tracebacks; a server that prints megabytes neither blocks nor fills our memory."""
TORN_CHARACTERS = 4096
"""Left out of the beginning of one endless line of which only the end is kept."""
LINE_CHARACTERS = 500
"""A server may print one endless line."""


class Tail:
    """Owns the read end `number` and closes it when the last writer has gone."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._kept = bytearray()
        self._lock = threading.Lock()
        self.total_bytes = 0
        self._thread = threading.Thread(target=self._drain, name="tail", daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        while True:
            try:
                piece = os.read(self._number, 1 << 16)
            except OSError:
                break
            if not piece:
                break
            with self._lock:
                self.total_bytes += len(piece)
                self._kept += piece
                del self._kept[:-KEPT_BYTES]
        os.close(self._number)

    def settle(self, timeout_s: float) -> bool:
        """Wait until all writers have gone and everything was read; whether that came about in time."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def lines(self, count: int = 20) -> tuple[str, ...]:
        """Return the last lines that are not blank, undecodable bytes replaced, overlong lines cut, secrets masked."""
        with self._lock:
            text = bytes(self._kept).decode("utf-8", "replace")
            torn = self.total_bytes > len(self._kept)
        if torn:
            # Its beginning may be the end of a secret, which nobody would know any more.
            first, end, rest = text.partition("\n")
            text = rest if end else first[TORN_CHARACTERS:]
        found = [line.rstrip() for line in secrets.mask(text).splitlines() if line.strip()]
        return tuple(
            line if len(line) <= LINE_CHARACTERS else line[:LINE_CHARACTERS] + "…" for line in found[-count:]
        )
