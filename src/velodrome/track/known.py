"""What a study may name on this installation."""

from collections.abc import Mapping

from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.plan.known import Known
from velodrome.run.drivers import choosing
from velodrome.run.experiments import experiment as experiments


def known(stacks: Mapping[str, Stack] | None = None) -> Known:
    """Return all there is: stacks (those given, else those that ship), recipes, drivers, kinds of experiment."""
    every = catalog.stacks() if stacks is None else stacks
    return Known(every, catalog.recipes(), choosing.known(), experiments.settings())
