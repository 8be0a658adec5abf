"""What a treatment is given: the process that is treated, in which it acts, notes, and waits for the app to be warm."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Set

from velodrome.guest.injected.importing import Finder

sleep = time.sleep
"""As it is before gevent makes it one that lets others run."""
WARM = "warm"
"""File that says that the app has answered its first requests."""
POLL_S = 0.05


class Giving:
    """One process that is treated."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.finder = Finder()
        self._noted: Set[str] = set()
        self._warm: Optional[List[bool]] = None

    def took(self, name: str) -> None:
        """Note once that a treatment met what it changes."""
        if name in self._noted:
            return
        self._noted.add(name)
        self.write("took", {"took": name, "at": time.monotonic()})

    def write(self, what: str, line: Mapping[str, Any]) -> None:
        """Write a line for the host, into the file of this process for what it is about."""
        with open(os.path.join(self.folder, "%s-%d.jsonl" % (what, os.getpid())), "a") as file:
            file.write(json.dumps(line) + "\n")

    def wait_for(self, name: str, every_s: float = POLL_S) -> None:
        """Wait until the host has made a file of this name, and look for it so often."""
        path = os.path.join(self.folder, name)
        while not os.path.exists(path):
            sleep(every_s)

    def when_warm(self, act: Callable[[], None]) -> None:
        """Call `act` once when the app has answered its first requests, and in each worker forked from here."""

        def begin() -> None:
            threading.Thread(
                target=self._wait_for_warmth, args=(act,), name="velodrome-warm", daemon=True
            ).start()

        begin()
        os.register_at_fork(after_in_child=begin)

    def warmth(self) -> List[bool]:
        """Return a list that is empty until the app has answered its first requests."""
        if self._warm is None:
            warm: List[bool] = []
            self._warm = warm
            self.when_warm(lambda: warm.append(True))
        return self._warm

    def _wait_for_warmth(self, act: Callable[[], None]) -> None:
        self.wait_for(WARM)
        act()


Treatments = Dict[str, Callable[[Giving, Any], None]]
"""By the names by which the host asks for them."""
