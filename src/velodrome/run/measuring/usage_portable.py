"""What the processes of a server use, through psutil: where there is no /proc (macOS)."""

import time
from collections.abc import Iterable, Mapping

import psutil

from velodrome.run.measuring.usage import ProcessUse, TreeUse


class PortableReader:
    """Reads through psutil: macOS. No CPU of ended children: forking servers look cheap."""

    def __init__(self, root: int) -> None:
        self.root = root

    def use(self) -> TreeUse:
        """See `Reader.use`."""
        at_ns = time.monotonic_ns()
        try:
            top = psutil.Process(self.root)
            members = [top, *top.children(recursive=True)]
        except psutil.Error:
            members = []
        read = [use for member in members if (use := self._read(member))]
        cpu_s = sum(process.cpu_s for process in read)
        return TreeUse(at_ns, tuple(read), cpu_s, sum(process.cpu_s * process.user_share for process in read))

    @staticmethod
    def _read(process: psutil.Process) -> ProcessUse | None:
        try:
            with process.oneshot():
                if process.status() == psutil.STATUS_ZOMBIE:
                    return None
                times = process.cpu_times()
                cpu_s = times.user + times.system
                return ProcessUse(
                    pid=process.pid,
                    parent=process.ppid(),
                    started=process.create_time(),
                    cpu_s=cpu_s,
                    user_share=times.user / cpu_s if cpu_s else 1.0,
                    children_cpu_s=0.0,
                    rss_bytes=process.memory_info().rss,
                    threads=process.num_threads(),
                    name=process.name(),
                )
        except psutil.Error:
            return None

    def fds(self, pids: Iterable[int]) -> int | None:
        """See `Reader.fds`."""
        try:
            return sum(psutil.Process(pid).num_fds() for pid in pids)
        except psutil.Error:
            return None

    def switches(self, pids: Iterable[int]) -> Mapping[int, tuple[int, int]] | None:
        """See `Reader.switches`."""
        try:
            counts = {pid: psutil.Process(pid).num_ctx_switches() for pid in pids}
        except psutil.Error:
            return None
        return {pid: (count.voluntary, count.involuntary) for pid, count in counts.items()}

    def pss_bytes(self, pids: Iterable[int]) -> int | None:
        """Not known on macOS."""
        return None
