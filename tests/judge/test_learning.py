"""What a run teaches of the noise of its machine, and what is known after several."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.judge.made import HELLO_Q, MACHINE, STACKS, STOLEN, measured, results, trial

from velodrome.judge.learning import learn
from velodrome.model.measurement import Measurement
from velodrome.model.noise import SHARES, SHIPPED, Noise, Spread, noise_of, together
from velodrome.model.results import Results, dump_header, parse
from velodrome.run.machine import known_noise

BUSY = "throughput busy"


def race(noise: float, blocks: int = 6, **facts: Any) -> Results:
    """Three servers of different speed, busy, on a machine that drifts by 10 % from block to block."""
    draw = np.random.default_rng(3)
    drift = draw.normal(0, 0.1, blocks)
    found: list[Measurement] = []
    for name, level in (("granian", 4000), ("uvicorn", 2500), ("gevent", 1500)):
        found += [
            measured(
                trial(name, HELLO_Q, block),
                level * float(np.exp(drift[block] + draw.normal(0, noise / 2**0.5))),
                cpu_us=0.9e6 / level,
                **facts,
            )
            for block in range(blocks)
        ]
    return results(found)


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.15])
def test_a_race_teaches_how_much_equals_differ_and_not_what_all_blocks_share(noise: float) -> None:
    found = learn(race(noise, blocks=20), STACKS)[BUSY]
    assert found.share == pytest.approx(noise, rel=0.3)
    assert found.df == pytest.approx(0.6 * 2 * 19, rel=0.01)


def test_one_block_one_contestant_and_what_is_set_aside_teach_nothing() -> None:
    assert learn(race(0.05, blocks=1), STACKS) == {}
    assert learn(results([measured(trial("granian", block=n), 100) for n in range(4)]), STACKS) == {}
    assert learn(race(0.05, flags=(STOLEN,)), STACKS) == {}


def test_what_is_known_of_a_machine_is_what_was_seen_shrunk_towards_the_shipped_table() -> None:
    few, many = (noise_of({BUSY: Spread(0.2, df=df)}).of(BUSY) for df in (1.0, 60.0))
    assert SHARES[BUSY].share < few.share < many.share < 0.2
    assert (few.df, many.df) == (5.0, 64.0)
    assert noise_of({}) == SHIPPED


def test_runs_add_up_to_a_limit_and_the_latest_count_most() -> None:
    seen: dict[str, Spread] = {}
    for _ in range(10):
        seen = together(seen, {BUSY: Spread(0.1, df=20)})
    assert seen[BUSY].df == 60
    assert together(seen, {BUSY: Spread(0.3, df=20)})[BUSY].share > 0.15


def test_a_machine_keeps_what_it_taught_and_another_does_not_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VELODROME_CACHE", str(tmp_path))
    assert known_noise.of(MACHINE) == SHIPPED
    known_noise.keep(MACHINE, {BUSY: Spread(0.1, df=30)})
    assert known_noise.of(MACHINE).of(BUSY).df == 34
    assert known_noise.of({**MACHINE, "cpus": 64}) == SHIPPED
    (tmp_path / known_noise.NAME).write_text(json.dumps({"machine": {}, "seen": 3}))
    assert known_noise.of(MACHINE) == SHIPPED


def test_a_header_tells_the_noise_a_run_is_judged_with_and_an_older_one_that_of_now() -> None:
    header = results([]).header
    known = Noise({**SHARES, BUSY: Spread(0.123, df=9)})
    line = json.loads(dump_header(header))
    line["noise"]["spreads"][BUSY] = {"share": 0.123, "floor_ms": 0.0, "df": 9}
    assert parse(json.dumps(line).encode() + b"\n").header.noise == known
    del line["noise"]
    assert parse(json.dumps(line).encode() + b"\n").header.noise == SHIPPED
