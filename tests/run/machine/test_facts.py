"""Facts of the machine are read as the system shows them, and missing ones are None."""

import json

import pytest

from velodrome.run.machine import facts

BARE = "processor\t: 0\nmodel name\t: Some  CPU @ 3 GHz\nflags\t\t: fpu sse\n"
GUEST = "processor\t: 0\nmodel name\t: EPYC\nflags\t\t: fpu hypervisor sse\n"


def test_all_facts_are_plain_and_the_important_ones_are_there() -> None:
    found = facts.facts()
    assert json.loads(json.dumps(found)) == found
    for name in ("system", "kernel", "cpu", "cpus", "usable_cpus", "memory_bytes", "python"):
        assert found[name], name


@pytest.mark.parametrize(
    ("cpuinfo", "model"), [(BARE, "Some CPU @ 3 GHz"), ("Model\t: Raspberry Pi 5\n", "Raspberry Pi 5")]
)
def test_the_cpu_is_named_as_its_maker_names_it(cpuinfo: str, model: str) -> None:
    assert facts.cpu_model(cpuinfo) == model


def test_an_unnamed_cpu_is_its_architecture() -> None:
    assert facts.cpu_model("")


def test_a_virtual_machine_is_distinguished_from_a_bare_one() -> None:
    inside = facts.virtualisation(BARE, "")  # whether these tests themselves run in a container
    guest = facts.virtualisation(GUEST, "KVM")
    assert inside in (None, "container")
    assert guest == ("KVM" if inside is None else "container on KVM")
    assert (facts.virtualisation(GUEST, "") or "").endswith("a hypervisor")
