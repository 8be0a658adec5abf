"""Every load of a shipped study that names another driver is one which that driver can carry, in both forms."""

import pytest
from tests.run.drivers.record import DIALECTS

from velodrome.guest import catalog
from velodrome.guest.recipe import Recipe
from velodrome.model.load import Load
from velodrome.plan import study_file
from velodrome.run.drivers.driver import Target
from velodrome.usecases.studies import list_known

STACKS = catalog.stacks()


def targets(recipe: Recipe, stacks: set[str]) -> dict[str, Target]:
    """Return the targets of servers of a recipe, by protocol."""
    spoken = {catalog.interface(STACKS[name].interface).protocol for name in stacks if name in STACKS}
    address = {"http": "http://127.0.0.1:1/", "grpc": "grpc://127.0.0.1:1/helloworld.Greeter/SayHello"}
    return {protocol: Target.of_recipe(address[protocol], recipe) for protocol in spoken & set(address)}


@pytest.mark.parametrize("quick", [False, True], ids=["full", "quick"])
@pytest.mark.parametrize("name", sorted(study_file.shipped_studies()))
def test_every_load_by_another_driver_fits_it(name: str, quick: bool) -> None:
    study = study_file.load_study(name, list_known(), quick=quick)
    misfits = []
    for question, contestant in study.pairs():
        for load in (candidate for candidate in question.loads if candidate.driver in DIALECTS):
            for target in targets(question.recipe, {contestant.stack}).values():
                misfits += misfit(f"{question.name}/{contestant.label}", load, target)
    assert misfits == []


def misfit(cell: str, load: Load, target: Target) -> list[str]:
    unfit = DIALECTS[load.driver].unfit(load, target)
    return [f"{cell} {load.label}: {unfit.field} = {unfit.value}: {unfit.can}"] if unfit else []
