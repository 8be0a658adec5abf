"""Every benchmark, one after the other, alone on the machine: `make bench`.

`--only arrivals truth` runs some; `--record` also puts their tables into benchmarks/README.md, each below its machine.
"""

import platform
import re
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import arrivals
import closed_loop
import freeze
import grpc
import start
import ten_thousand
import threads
import upstream
from rounds import Table, alone, arguments, measured
from track import cpus

import truth

HANDLERS = "handlers"
BENCHMARKS = (closed_loop, threads, grpc, arrivals, truth, freeze, ten_thousand, start, upstream)
PAGE = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- last result: written by run_all.py --record -->", "<!-- end of last result -->"


def machine() -> str:
    """Say where this was measured."""
    target, generator = cpus()
    return (
        f"{time.strftime('%Y-%m-%d')} · {platform.system()} {platform.release()} {platform.machine()}, "
        f"{model()}, Python {platform.python_version()} · "
        f"target on CPU {target}, generator on CPU {generator}"
        + (" (the same: figures are of both together)" if target == generator else "")
    )


def model() -> str:
    """Return the name of the CPU and how many there are."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} × {names[0]}" if names else "an unnamed CPU"


def record(where: str, benchmark: str, tables: list[Table]) -> None:
    """Replace the last result of a benchmark in the page; the others' stay."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    kept, _, after = rest.partition(END)
    _, *parts = re.split(r"<!-- (\w+) -->\n", kept)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    body = "\n".join(table.markdown() for table in tables)
    sections[benchmark] = f"\n{where}\n\n{body}\n"
    names = [name for name in map(named, BENCHMARKS) if name in sections]
    whole = "".join(f"<!-- {name} -->\n{sections[name]}" for name in names)
    PAGE.write_text(f"{before}{BEGIN}\n{whole}{END}{after}")


def named(benchmark: ModuleType) -> str:
    """Return what `--only` calls it."""
    return benchmark.__name__


def main() -> int:
    """Run them; the exit status is that of the handlers' benchmark, the only one that judges."""
    parser = arguments(__doc__)
    parser.add_argument("--record", action="store_true", help="put the result into README.md")
    every = [*map(named, BENCHMARKS), HANDLERS]
    parser.add_argument("--only", nargs="+", choices=every, default=every, help="run these")
    options = parser.parse_args()
    with alone("make bench"):
        print(machine(), end="\n\n", flush=True)
        for benchmark in BENCHMARKS:
            if named(benchmark) in options.only:
                tables = measured(benchmark.tables, max(1, options.rounds))
                for table in tables:
                    print(table.text(), flush=True)
                if options.record:
                    record(machine(), named(benchmark), tables)
        if HANDLERS not in options.only:
            return 0
        script = Path(__file__).with_name(f"{HANDLERS}.py")
        return subprocess.run([sys.executable, str(script)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
