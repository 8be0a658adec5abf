"""Importing a module has no effect, needs no other to have been imported first, and warns of nothing."""

import pkgutil
import subprocess
import sys

import pytest

import velodrome

pytestmark = pytest.mark.integration

FOUND = [
    module
    for module in pkgutil.walk_packages(velodrome.__path__, "velodrome.")
    if module.name not in ("velodrome.__main__", "velodrome._native")
]
MODULES = sorted(module.name for module in FOUND)
PACKAGES = sorted(module.name for module in FOUND if module.ispkg)

PROBE = """
import os, sys, threading

least, *names = sys.argv[1:]

# What others wrote is imported once and not for each module: it is not what is looked at, and takes far longer.
reading, writing = os.pipe()
if not os.fork():
    for name in names:
        __import__(name)
    foreign = [name for name in sys.modules if name.partition(".")[0] not in ("velodrome", "__main__")]
    os.write(writing, " ".join(foreign).encode())
    os._exit(0)
os.close(writing)
with open(reading) as listing:
    foreign = listing.read().split()
assert len(foreign) > int(least)
for name in foreign:
    try:
        __import__(name)
    except ImportError:  # made by another while that was imported
        pass

for name in names:
    before = (set(os.environ), threading.active_count(), os.getcwd())
    pid = os.fork()
    if not pid:
        __import__(name)
        after = (set(os.environ), threading.active_count(), os.getcwd())
        os._exit(0 if before == after else 7)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status:
        print(f"{name}: exit {status}")
        failed = True
sys.exit("failed" in globals())
"""


@pytest.mark.parametrize(
    ("names", "least"),
    [
        pytest.param(PACKAGES, 25, id="packages"),  # 31 foreign modules
        pytest.param(MODULES, 500, id="modules", marks=pytest.mark.exhaustive),  # 750, and 50 s of a CPU
    ],
)
def test_each_imports_alone_without_warning_or_effect(names: list[str], least: int) -> None:
    """`least` modules that others wrote are imported beforehand, else the test would look at those too.

    That no imports go round in a circle (see test_arrows.py) is why any other module does too."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROBE, str(least), *names],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_judging_and_reporting_work_without_the_engine() -> None:
    block = "import sys; sys.modules['velodrome._native'] = None\n"
    names = [name for name in MODULES if name.split(".")[1] in ("guest", "model", "plan", "judge", "report")]
    result = subprocess.run(
        [sys.executable, "-c", block + "\n".join(f"import {name}" for name in names)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
