"""What has to be so before anything is measured: nobody else measures, limits can be held, environments are there.

with opened(trials, lab, "capacity of hello", follower) as lab:
    with ExitStack() as running:
        booted = boot(trials[0], lab, running)
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from velodrome.model.load import Limits
from velodrome.model.trial import Trial
from velodrome.run.lab import Lab
from velodrome.run.link import site
from velodrome.run.machine import limits, placement
from velodrome.run.machine.measuring_lock import alone
from velodrome.run.racing.follower import Preparing
from velodrome.run.racing.preparing import prepared
from velodrome.run.supervision import orphans, scratch
from velodrome.run.supervision.undisturbed import stoppable


@contextmanager
def opened(
    trials: Sequence[Trial], lab: Lab, what: str, follower: Preparing, wait_s: float | None = 0.0
) -> Iterator[Lab]:
    """Hold the machine and yield a lab in which these trials can be booted; `what` tells others who we are.

    `wait_s` is how long to wait for another velodrome to end; None: as long as it takes. SIGTERM and SIGHUP raise
    KeyboardInterrupt as Ctrl-C does. Raises LimitError, LinkRefusedError, BusyError; an environment that cannot be made
    fails the boot of its trials.
    """
    refuse_impossible(trials, lab)

    def waiting(holder: str) -> None:
        follower.preparing(f"waiting for another velodrome ({holder})")

    with alone(what, wait_s, waiting), stoppable():
        swept(follower)
        yield prepared(trials, (), proven(trials, lab), follower)


def refuse_impossible(trials: Sequence[Trial], lab: Lab) -> None:
    """Tell what is impossible before anything is prepared or measured. Raises LimitError or LinkRefusedError.

    Where some trials have a link and others have none, the others go on and these fail, each with the reason.
    """
    for asked in {trial.limits for trial in trials}:
        placed = placement.place(lab.cpus, asked)
        limits.bounds(asked, placed.server_cpus, lab.where)
    links = [trial.link for trial in trials]
    if links and all(links):
        site.refuse_impossible(link for link in links if link)


def proven(trials: Sequence[Trial], lab: Lab) -> Lab:
    """Find out which control groups may really be used, unless the lab was told."""
    if lab.where or not trials:
        return lab
    every = {trial.limits for trial in trials}
    cpus = next((one.cpus for one in every if one.cpus is not None), None)
    memory = next((one.memory_bytes for one in every if one.memory_bytes is not None), None)
    asked = Limits(cpus, memory)
    return replace(lab, where=limits.proven(asked, placement.place(lab.cpus, asked).server_cpus))


def swept(follower: Preparing) -> None:
    """End and remove what velodromes left that were killed with all their wardens; tell it if there was anything."""
    counted = {"processes": orphans.sweep(), "control groups": limits.sweep(), "folders": scratch.sweep()}
    if any(counted.values()):
        told = ", ".join(f"{what}: {count}" for what, count in counted.items() if count)
        follower.preparing(f"taken away what a killed velodrome had left ({told})")


@contextmanager
def host_beside(asked: Limits, lab: Lab) -> Iterator[None]:
    """Keep velodrome itself (sampler, output of the server) off the server's CPUs where there are others."""
    placed = placement.place(lab.cpus, asked, placement.cores(lab.cpus))
    if placed.shared or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        with suppress(OSError):  # these CPUs were taken away meanwhile: the trial itself tells that
            os.sched_setaffinity(0, {*placed.load_cpus, *placed.upstream_cpus})
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, before)
