"""Four agents on four hosts, a coordinator and a command on a fifth, and the target on a sixth: network namespaces."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.run.cluster import hosts
from tests.run.cluster.hosts import Cluster, Target, result

from velodrome.judge.histograms import decode
from velodrome.run.engine import LoadSpec

pytestmark = hosts.needed

TARGET, ALONE, AGENTS = 5, 4, (1, 2, 3, 4)


network, target, cluster = hosts.fixtures(6, TARGET, AGENTS)


@pytest.mark.measured
@pytest.mark.parametrize(
    "seconds", [pytest.param(2, id="2s"), pytest.param(20, id="20s", marks=pytest.mark.exhaustive)]
)
def test_each_request_of_8000_a_second_arrives_once(
    cluster: Cluster,
    target: Target,
    tmp_path: Path,
    seconds: int,
    record_property: Callable[[str, object], None],
) -> None:
    how = ["-R", "8000", "-z", f"{seconds}s", "-c", "200", "--template"]
    code, document, error = result(cluster.command(f"{target.url}/{{{{n}}}}", *how))
    assert code in (0, 3), (error, document.get("outcomes"), document.get("agents"))
    numbers, moments = target.taken(tmp_path)
    assert sorted(numbers) == list(range(8000 * seconds))
    assert document["requests"] == document["ok"] == 8000 * seconds
    assert {"agent-lost", "clocks-apart"}.isdisjoint(document["flags"])
    assert [row["name"] for row in document["agents"]] == [f"host-{n}" for n in AGENTS]
    assert [row["requests"] for row in document["agents"]] == [2000 * seconds] * 4
    for row in document["agents"]:  # they share this machine's clock
        assert abs(row["offset_ms"]) <= row["uncertainty_ms"]
        assert row["address"].startswith("tls://198.18.0.")
    assert decode(document["hdr"]["due"]).total == 8000 * seconds
    spec = LoadSpec(url=target.url, rate=8000.0, duration_s=seconds)
    off = hosts.deviations_us(spec, numbers, moments)
    here = cluster.network.hosts[ALONE].start(
        *hosts.VELODROME,
        *("load", f"{target.url}/{{{{n}}}}", "--allow-target", cluster.network.hosts[TARGET].address),
        *("--json", *how),
    )
    code, alone, error = result(here)
    assert code in (0, 3), error
    numbers, moments = target.taken(tmp_path)
    assert sorted(numbers) == list(range(8000 * seconds))
    of_one = hosts.deviations_us(spec, numbers, moments)
    record_property(
        "deviation_us",
        {
            who: {f"p{share}": round(found[len(found) * share // 100], 1) for share in (50, 90, 99)}
            | {"max": round(found[-1], 1)}
            for who, found in (("four", off), ("one", of_one))
        },
    )
    record_property("lag_ms", {"four": document["lag_ms"], "one": alone["lag_ms"]})
    record_property("agents", document["agents"])
    record_property("flags", {"four": document["flags"], "one": alone["flags"]})
