"""What every stack is conformance-tested with: its environment, the guest tree, a third party."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.model.errors import EnvironmentFailedError
from velodrome.run.environments import environment, guest_tree
from velodrome.run.third_party import upstream as third_party


@pytest.fixture(scope="session")
def upstream() -> Iterator[str]:
    """The base URL of a third party."""
    with third_party.start() as running:
        yield running.url


@pytest.fixture(scope="session")
def tree() -> Path:
    """The guest tree, exported."""
    return guest_tree.export()


@pytest.fixture(scope="session")
def python_of() -> Callable[[Stack], Path]:
    """The interpreter in a stack's own environment; all are made by whichever worker is first."""
    stacks = catalog.stacks().values()
    cannot = {stack.name: why for stack in stacks if (why := environment.cannot_run(stack))}
    made = environment.prepare([stack for stack in stacks if stack.name not in cannot])

    def python(stack: Stack) -> Path:
        if stack.name in cannot:
            pytest.skip(f"{stack.name}: {cannot[stack.name]}")
        one = made[stack.name]
        if isinstance(one, EnvironmentFailedError):
            raise one
        return one.python

    return python
