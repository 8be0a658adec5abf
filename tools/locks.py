"""Writes the hashed locks of all environments that ship: `.venv/bin/python tools/locks.py [--only-missing]`.

Those of the stacks; of the clients through which velodrome makes a database ready; and, for recipes that ask
databases, those of the contestants that the studies race on them.
"""

import sys

from velodrome.guest import catalog
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack
from velodrome.plan import matrix, study_file
from velodrome.plan.findings import Known
from velodrome.run.drivers import driver as drivers
from velodrome.run.environments import environment
from velodrome.run.experiments import experiment as experiments


def raced() -> list[tuple[Stack, Recipe]]:
    """Return every stack with every recipe that a study which ships races it on, as it is pinned."""
    stacks = catalog.stacks()
    known = Known(stacks, catalog.recipes(), drivers.driver_names(), experiments.settings())
    found = []
    for name in study_file.shipped_studies():
        study = study_file.load_study(name, known)
        for session in matrix.lay_out(study, stacks).sessions:
            trial = session.trials[0]
            if not trial.contestant.packages:
                found.append((stacks[trial.contestant.stack], trial.recipe))
    return found


def main() -> int:
    """Renew all locks, or write the missing; the exit status is 3 if one could not be made."""
    sets = environment.requirement_sets(raced())
    missing = [wanted for wanted in sets if not environment.path_of(wanted).is_file()]
    problems = environment.write(missing) if "--only-missing" in sys.argv else environment.renew(sets)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 3 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
