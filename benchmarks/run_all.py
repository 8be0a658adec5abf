"""Every benchmark, one after the other, alone on the machine: `make bench`.

`--record` also puts the tables into benchmarks/README.md.
"""

import platform
import subprocess
import sys
import time
from pathlib import Path

import arrivals
import closed_loop
import freeze
import grpc
import ten_thousand
import upstream
from rounds import Table, alone, arguments, measured
from track import cpus

BENCHMARKS = (closed_loop, grpc, arrivals, freeze, ten_thousand, upstream)
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


def record(where: str, tables: list[Table]) -> None:
    """Replace the last result in the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    body = "\n".join(table.markdown() for table in tables)
    PAGE.write_text(f"{before}{BEGIN}\n\n{where}\n\n{body}\n{END}{after}")


def main() -> int:
    """Run them all; the exit status is that of the handlers' benchmark, the only one that judges."""
    parser = arguments(__doc__)
    parser.add_argument("--record", action="store_true", help="put the result into README.md")
    asked = parser.parse_args()
    tables: list[Table] = []
    with alone("make bench"):
        print(machine(), end="\n\n", flush=True)
        for benchmark in BENCHMARKS:
            for table in measured(benchmark.tables, max(1, asked.rounds)):
                tables.append(table)
                print(table.text(), flush=True)
        handlers = subprocess.run([sys.executable, str(Path(__file__).with_name("handlers.py"))], check=False)
    if asked.record:
        record(machine(), tables)
    return handlers.returncode


if __name__ == "__main__":
    sys.exit(main())
