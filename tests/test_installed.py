"""velodrome as a stranger has it: the wheel in an environment of its own, on a machine without Rust or a compiler.

Needs a wheel: `make test` builds it, and `make installed-test` does so for these alone. Of what they measure nothing is
looked at.
"""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

WHEEL = os.environ.get("VELODROME_WHEEL", "")
ROOT = Path(__file__).parents[1]
BUILDERS = re.compile(r"cargo|rust|maturin|gcc|g\+\+|cc|c\+\+|c[89]9(-gcc)?|cpp|clang|ld|as|tcc|make|cmake")
SHOP = """
import time


def application(environ, start_response):
    time.sleep(0.02)  # so that no load of it takes a CPU
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]
"""

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not WHEEL, reason="no wheel in VELODROME_WHEEL: make installed-test"),
]


def builds(name: str) -> bool:
    """Whether a program compiles or links, under its own name or that of a target (x86_64-linux-gnu-gcc-12)."""
    bare = re.sub(r"^[\w]+-linux-gnu-", "", name)
    return bool(re.fullmatch(rf"(?:{BUILDERS.pattern})(?:-[\d.]+)?", bare))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment variables of a machine that has the wheel installed, and no compiler on its PATH."""
    folder = tmp_path_factory.mktemp("bare")
    programs, place = folder / "bin", folder / "venv"
    programs.mkdir()
    for source in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for path in Path(source).iterdir() if Path(source).is_dir() else ():
            if not builds(path.name) and not (programs / path.name).exists():
                (programs / path.name).symlink_to(path)
    uv = ROOT / ".tools/bin/uv"
    installer = [
        str(uv if uv.exists() else "uv"),
        "pip",
        "install",
        "--quiet",
        "--python",
        f"{place}/bin/python",
    ]
    subprocess.run([installer[0], "venv", "--quiet", "--python", sys.executable, str(place)], check=True)
    locked = ["--require-hashes", "--no-build", "-r", str(ROOT / "requirements/host.txt")]
    subprocess.run([*installer, *locked], check=True, env=os.environ | {"PATH": str(programs)})
    extra = ["--no-deps", "--no-build", WHEEL]
    subprocess.run([*installer, *extra], check=True, env=os.environ | {"PATH": str(programs)})
    test_tools = ["--no-build", "-c", str(ROOT / "requirements/dev.txt"), "pytest"]
    subprocess.run([*installer, *test_tools], check=True, env=os.environ | {"PATH": str(programs)})
    for name in ("cargo", "rustc", "cc", "gcc", "maturin"):
        assert not (programs / name).exists()
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CARGO", "RUST"))
    } | {"PATH": f"{place}/bin:{programs}"}


def ran(bare: dict[str, str], cwd: Path, *words: str, codes: tuple[int, ...] = (0,)) -> str:
    """Return what a command of that environment printed; it must end with one of `codes`."""
    program = Path(bare["PATH"].split(":")[0]) / words[0]
    done = subprocess.run(
        [program, *words[1:]], env=bare, cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode in codes, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_is_for_every_python_and_carries_its_bill_of_materials() -> None:
    assert re.search(r"-cp311-abi3-(manylinux_2_\d+|macosx)", WHEEL)
    with zipfile.ZipFile(WHEEL) as wheel:
        names = wheel.namelist()
    assert any(name.endswith(".cyclonedx.json") for name in names)
    assert not [name for name in names if name.endswith((".pyc", ".rs")) or "/tests/" in name]


def test_it_is_imported_from_the_wheel(bare: dict[str, str], tmp_path: Path) -> None:
    where = ran(bare, tmp_path, "python", "-c", "import velodrome; print(velodrome.__file__)")
    assert str(ROOT / "src") not in where


def test_it_loads(bare: dict[str, str], tmp_path: Path) -> None:
    program = Path(bare["PATH"].split(":")[0]) / "velodrome"
    with subprocess.Popen(
        [program, "upstream", "--latency", "1ms"], env=bare, stdout=subprocess.PIPE, text=True
    ) as upstream:
        assert upstream.stdout is not None
        address = re.search(r"http://\S+", upstream.stdout.readline())
        assert address is not None
        found = json.loads(
            ran(bare, tmp_path, "velodrome", "load", address[0], "-z", "1s", "-c", "2", "--json")
        )
        upstream.terminate()
    assert found["outcomes"]["ok"] > 100


def test_it_compares_an_app_of_ones_own(bare: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    stacks = ["--stack", "waitress", "--stack", "gunicorn-sync"]
    ran(
        bare,
        tmp_path,
        "velodrome",
        "compare",
        "shop:application",
        *stacks,
        "-z",
        "0.5s",
        "--blocks",
        "1",
        "--out",
        "run",
    )
    assert (tmp_path / "run/report.html").exists()


@pytest.mark.exhaustive  # a minute or two, and beside what `compare` shows only that `tune` is there
def test_it_tunes_an_app_of_ones_own(bare: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    words = ["--stack", "waitress", "-R", "20", "--slo", "p50 < 200ms", "--budget", "8s", "--json"]
    # 4: in so short a time, or beside other programs, nothing may be settled, and it says so.
    found = json.loads(ran(bare, tmp_path, "velodrome", "tune", "shop:application", *words, codes=(0, 4)))
    assert found["schema"].startswith("velodrome/tune/")
    assert found["trials"] > 0


def test_it_runs_of_the_first_race(bare: dict[str, str], tmp_path: Path) -> None:
    ran(
        bare, tmp_path, "velodrome", "run", "first-lap", "--quick", "--only", "hello/waitress", "--out", "run"
    )
    assert (tmp_path / "run/report.html").exists()


def test_its_pytest_plugin_is_found(bare: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text("def test_it(velodrome):\n    assert velodrome.load\n")
    assert "1 passed" in ran(bare, tmp_path, "python", "-m", "pytest", "-q")
