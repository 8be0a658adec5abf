"""How long it takes to judge stored results: 180 trials, as the first race has, and thousands.

    .venv/bin/python -m benchmarks.judging            # 180, 1 000, 3 000 and 10 000 trials

The results are made up and seeded: six contestants under a closed and an open loop, with histograms as large as those
of real trials (some 1 500 buckets). Measured is what `velodrome judge` does between the file and the verdict, in a
process of its own for each size, and what importing it takes: so imports stand in the functions.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONTESTANTS, LOADS = 6, 2
SIZES = (180, 1_000, 3_000, 10_000)


def make(path: Path, trials: int) -> int:
    """Write results of about so many trials; return how many they are."""
    import numpy as np  # noqa: PLC0415
    from tests.judge import made  # noqa: PLC0415

    from velodrome.model import results  # noqa: PLC0415

    draw = np.random.default_rng(11)
    blocks = max(trials // (CONTESTANTS * LOADS), 1)
    found = []
    for number in range(CONTESTANTS):
        name = f"made-{number}"
        for block in range(blocks):
            for load in (made.CLOSED, made.OPEN):
                rps = 100.0 if load is made.OPEN else float(3000 * 1.1**number * draw.lognormal(0, 0.03))
                latencies = draw.lognormal(2, 0.6, 3000)
                of = made.trial(name, block=block, load=load)
                found.append(
                    made.measured(
                        of, rps, 300, latencies_ms=latencies.tolist(), mean_ms=float(latencies.mean())
                    )
                )
    whole = made.results(found, blocks=blocks)
    lines = [results.dump_header(whole.header), *(results.dump(result) for result in found)]
    path.write_text("\n".join(lines) + "\n")
    return len(found)


def judge(path: Path) -> dict[str, float]:
    """Judge a file in this process; return seconds, imports apart."""
    begun = time.perf_counter()
    from velodrome.guest import catalog  # noqa: PLC0415
    from velodrome.judge.verdict import judge as judged  # noqa: PLC0415
    from velodrome.model import results  # noqa: PLC0415

    stacks = catalog.stacks()
    imported = time.perf_counter()
    whole = results.parse(path.read_bytes())
    parsed = time.perf_counter()
    verdict = judged([whole], stacks)
    done = time.perf_counter()
    assert verdict.answers
    return {"imports": imported - begun, "read": parsed - imported, "judged": done - parsed}


def main() -> None:
    """Print a row for each size."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    options.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one is not None:
        print(json.dumps(judge(given.one)))
        return
    print(f"{'trials':>8} {'imports':>9} {'read':>9} {'judged':>9} {'ms a trial':>11}")
    with tempfile.TemporaryDirectory() as folder:
        for size in given.sizes:
            path = Path(folder) / f"{size}.jsonl"
            trials = make(path, size)
            command = [sys.executable, "-m", "benchmarks.judging", "--one", str(path)]
            runs = [
                json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                for _ in range(3)
            ]
            best = {part: min(run[part] for run in runs) for part in runs[0]}
            per_trial_ms = (best["read"] + best["judged"]) / trials * 1e3
            print(
                f"{trials:>8} {best['imports']:>7.2f} s {best['read']:>7.2f} s {best['judged']:>7.2f} s "
                f"{per_trial_ms:>11.2f}"
            )


if __name__ == "__main__":
    main()
