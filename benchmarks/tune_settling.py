"""How often `velodrome tune` settles within a budget, and how far what it then recommends is behind the best.

    python benchmarks/tune_settling.py [--races 10]

Whole searches on six kinds of simulated app (`tests/judge/tuning/servers.py`), whose best setting is known: for the
highest throughput, and for the least CPU at three tenths of it; with five and with ten minutes, of which the race, the
looks and the confirmation have what the command gives them.
"""

import argparse
import sys
from pathlib import Path
from statistics import fmean, quantiles

from rounds import Table

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.judge.tuning.servers import APPS, CPUS, App, Servers, candidates, regret, takes_s, tune

from velodrome.judge.search.holding import Demands
from velodrome.judge.tuning.racing import CONFIRM_S, CONFIRMING, CONFIRMING_COST
from velodrome.model.tuning import Ask, Goal, TuneEnding, Wanted
from velodrome.usecases.tune import LOOKS, Budget

EVERY = candidates()
MOST = 3 * len(EVERY)
RATE = 0.3
"""Of the highest throughput, where the least CPU is sought."""
LOAD_S, LOOK_S = 6.0, 9.0
"""How long the next load, and the next look at a stack, may take."""
BAD = 0.1


def search(app: App, seed: int, goal: Goal, minutes: float, between: float) -> tuple[bool, float | None]:
    """Return whether a search is settled, and how far what it recommends is behind the best; None: it has none."""
    servers = Servers(app, seed, between=between)
    budget = Budget(60 * minutes, Demands(), goal is Goal.CPU)
    top = max(map(servers.capacity, EVERY))
    rate = RATE * top if goal is Goal.CPU else 0.0
    start_s = takes_s(Ask(CONFIRM_S, rate=1.0, fresh=True))
    start_s += ((CONFIRMING_COST if rate else CONFIRMING) - 1) * takes_s(Ask(CONFIRM_S, rate=1.0))

    def spent_s() -> float:
        return sum(takes_s(load) for _, load in servers.loads)

    found = tune(
        servers,
        EVERY,
        Wanted(goal, CPUS, rate, most=MOST),
        lambda: spent_s() + LOAD_S < budget.racing_s,
        looks_on=lambda: spent_s() + LOOK_S < LOOKS * budget.racing_s,
        confirms=lambda: CONFIRM_S if spent_s() + start_s < budget.confirmed_s else 0.0,
    )
    settled = found.ending is TuneEnding.SETTLED
    if found.best is None:
        return settled, None
    chosen = found.best.candidate
    if not rate:
        return settled, regret(servers, EVERY, chosen)
    able = [candidate for candidate in EVERY if servers.capacity(candidate) >= rate]
    return settled, servers.cost_us(chosen) / min(map(servers.cost_us, able)) - 1


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--races", type=int, default=10, help="on each app")
    races, rows = parser.parse_args().races, []
    for goal in (Goal.CAPACITY, Goal.CPU):
        for minutes in (5.0, 10.0):
            for between in (0.04, 0.08):
                found = [
                    search(app, 1_000 * number + seed, goal, minutes, between)
                    for number, app in enumerate(APPS)
                    for seed in range(races)
                ]
                behind = [share for settled, share in found if settled and share is not None]
                ninth = quantiles(behind, n=10)[-1] if len(behind) > 1 else float("nan")
                rows.append(
                    (
                        f"{goal.value}, {minutes:g} min, starts differ by {between:.0%}",
                        f"{len(behind)} of {len(found)}",
                        f"{fmean(behind):.1%}" if behind else "-",
                        f"{ninth:.1%}",
                        str(sum(share > BAD for share in behind)),
                    )
                )
    columns = ("search for", "settled", "behind the best", "nine of ten at most", f"over {BAD:.0%}")
    about = f"{races} searches on each of {len(APPS)} simulated apps, {len(EVERY)} candidates."
    print(Table("Searches that settle", about, columns, tuple(rows)).text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
