"""What every stack is conformance-tested with: its environment, the guest tree, a third party."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.model.errors import EnvironmentFailedError
from velodrome.run import third_party
from velodrome.run.environments import environment, guest_tree
from velodrome.run.environments.environment import Environment
from velodrome.run.environments.interpreter import find_uv


@pytest.fixture(scope="session")
def upstream() -> Iterator[str]:
    """The base URL of a third party."""
    with third_party.start() as running:
        yield running.url


@pytest.fixture(scope="session")
def tree() -> Path:
    """The guest tree, exported."""
    return guest_tree.export()


def _made(stack: Stack) -> Environment | EnvironmentFailedError:
    """Make an environment; one that fails is an error of the tests of its stack alone."""
    try:
        return environment.environment_for(stack)
    except EnvironmentFailedError as error:
        return error


@pytest.fixture(scope="session")
def python_of() -> Callable[[Stack], Path]:
    """The interpreter in a stack's own environment; all are made by whichever worker is first."""
    stacks = catalog.stacks().values()
    cannot = {stack.name: why for stack in stacks if (why := environment.cannot_run(stack))}
    wanted = [stack for stack in stacks if stack.name not in cannot]
    find_uv()  # here, because the tables of sysconfig that it reads are not made safely by two threads at once
    # uv downloads in parallel by itself; two of it keep a second CPU busy with unpacking and compiling.
    with ThreadPoolExecutor(2) as pool:
        made = dict(zip((stack.name for stack in wanted), pool.map(_made, wanted), strict=True))

    def python(stack: Stack) -> Path:
        if stack.name in cannot:
            pytest.skip(f"{stack.name}: {cannot[stack.name]}")
        environment = made[stack.name]
        if isinstance(environment, EnvironmentFailedError):
            raise environment
        return environment.python

    return python
