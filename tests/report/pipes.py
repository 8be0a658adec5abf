"""Named pipes and who reads them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def reader(path: Path) -> Iterator[list[str]]:
    """Somebody who reads a named pipe to its end."""
    heard: list[str] = []
    thread = threading.Thread(target=lambda: heard.append(path.read_text()), daemon=True)
    thread.start()
    yield heard
    thread.join(10)
