"""How much faster a race is over several hosts: the same blocks on one agent, on two and on four.

Every agent is of this machine and takes itself for the only one of a host: it has a name, and a measuring lock, of its
own. The contestants wait for most of a request, so two CPUs are enough for all of them: what is shown is how blocks are
handed out and come back, not what more CPUs are worth.

    python benchmarks/hosts.py --rounds 3
"""

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from rounds import Table, extent, interleaved, middle, show

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.run.cluster.posing import HOST, agent

from velodrome.guest import catalog
from velodrome.model.load import Load, Open
from velodrome.model.measurement import Measurement
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant
from velodrome.run.cluster import coordinator
from velodrome.run.machine import measuring_lock
from velodrome.run.racing import store
from velodrome.usecases import race
from velodrome.usecases.events import Events
from velodrome.usecases.race import RaceSpec
from velodrome.usecases.studies import Trust

HOSTS = (1, 2, 4)
RECIPE, RATE, SECONDS, BLOCKS = "sleep-50ms", 50.0, 3.0, 8
CONTESTANTS = (Contestant("asyncio-streams"), Contestant("aiohttp"))


def raced(hosts: int) -> tuple[float, int]:
    """Return the seconds that the race took, and how many hosts measured something."""
    question = Question("waits", catalog.recipes()[RECIPE], (Load(Open(RATE, "constant"), SECONDS, 0.5),))
    study = Study("hosts", "A race over hosts", (question,), CONTESTANTS, blocks=BLOCKS)
    trust = Trust(given=True, ask=None, say=lambda _: None)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = stack.enter_context(coordinator.coordinating(HOST, 0, 0))
        for number in range(hosts):
            own = str(folder / f"lock-{number}")
            change = f"import os; os.environ[{measuring_lock.VARIABLE!r}] = {own!r}"
            stack.enter_context(agent(address, f"agent-{number}", change))
        began = time.monotonic()
        race.race(RaceSpec(study, agents=address), trust, folder / "run", Events())
        seconds = time.monotonic() - began
        trials = store.read(folder / "run").trials
    assert len(trials) == BLOCKS * len(CONTESTANTS)
    assert all(isinstance(one, Measurement) for one in trials)
    return seconds, len({one.machine.name for one in trials if one.machine is not None})


def tables(rounds: int) -> list[Table]:
    """Race over one host, two and four, in another order each round."""
    raced(1)  # makes the environments
    seen = interleaved(HOSTS, raced, rounds)
    one = middle(seconds for seconds, _ in seen[0])
    rows = []
    for hosts, runs in zip(HOSTS, seen, strict=True):
        took = [seconds for seconds, _ in runs]
        rows.append(
            (
                f"{hosts}",
                f"{middle(took):.1f} s",
                extent(took, 1),
                f"{one / middle(took):.2f}×",
                "/".join(str(names) for _, names in runs),
            )
        )
    what = f"{BLOCKS} blocks of {len(CONTESTANTS)} contestants, {RECIPE} at {RATE:g}/s for {SECONDS:g} s"
    columns = ("hosts", "took", "rounds", "faster", "hosts that measured")
    return [Table("Blocks over hosts", f"{what}, median of {rounds} rounds", columns, tuple(rows))]


if __name__ == "__main__":
    show(tables, __doc__)
