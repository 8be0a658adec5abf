"""What else a machine did while it was being measured: much of it, and no latency can be believed."""

import os
import resource
import time
from pathlib import Path


class Neighbours:
    """What else the machine did: CPU time of programs that are not ours, and what the hypervisor took."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._busy, self._steal = self._machine()
        self._own = self._ours()

    def sentence(self) -> str:
        """Tell it, as a share of the machine since the beginning."""
        busy, steal = self._machine()
        whole = (time.monotonic() - self._began) * (os.cpu_count() or 1)
        others = max(0.0, busy - self._busy - (self._ours() - self._own)) / whole
        stolen = (steal - self._steal) / whole
        return (
            f"Meanwhile other programs used {others:.0%} of the machine; {stolen:.1%} was stolen by its host."
        )

    @staticmethod
    def _machine() -> tuple[float, float]:
        tick = os.sysconf("SC_CLK_TCK")
        numbers = [int(word) / tick for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        user, nice, system, _idle, _iowait, irq, softirq, steal = numbers
        return user + nice + system + irq + softirq, steal

    @staticmethod
    def _ours() -> float:
        used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in used)
