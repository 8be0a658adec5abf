"""Print the modules that one thing passes through, so that the depth of the house can be read off.

    python tools/walks.py compare     an app, from `velodrome compare` to its verdict (serves it for some seconds)
    python tools/walks.py claim       a claim of a study, from stored results to its judgement
    python tools/walks.py request     one request of a closed loop, through the engine

A module is on the way when one of its functions takes, or returns, what the walk is about: it is called with an
instance of one of the classes named in SUBJECTS, seen by the interpreter's profiling hook while the command runs. A
climb is a call from a room to one on a floor above it (FLOORS). The engine's walk is the list in its first page,
crates/engine/src/lib.rs; each file of it must exist.
"""

import contextlib
import io
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/velodrome"
ENGINE = ROOT / "crates/engine/src"
SUBJECTS = {
    "compare": {
        "AppSpec",
        "App",
        "Study",
        "Matrix",
        "RunPlan",
        "Trial",
        "Measurement",
        "Verdict",
    },
    "claim": {"Claim", "Judged", "Study", "Verdict"},
}
FLOORS = (
    ("guest",),
    ("model",),
    ("plan", "run", "judge", "report"),
    ("usecases",),
    ("cli", "api", "pytest_plugin"),
)
APP = """
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]
"""


class Walk:
    """Modules in the order in which the subject came to them, and the climbs between them."""

    def __init__(self, subjects: set[str]) -> None:
        self.subjects = subjects
        self.modules: list[str] = []
        self.climbs: list[tuple[str, str]] = []

    def look(self, frame: FrameType, event: str, value: object) -> None:
        """Note a call or a return; the interpreter's profiling hook."""
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(str(SOURCE)):
            return
        known = list(frame.f_locals.values())[: frame.f_code.co_argcount] if event == "call" else [value]
        if not any(self._is_subject(value) for value in known):
            return
        module = named(frame)
        if module not in self.modules:
            self.modules.append(module)
        caller = frame.f_back
        if event == "call" and caller is not None and caller.f_code.co_filename.startswith(str(SOURCE)):
            pair = (named(caller), module)
            if floor(pair[1]) > floor(pair[0]) and pair not in self.climbs:
                self.climbs.append(pair)

    def _is_subject(self, value: object) -> bool:
        values = value[:1] if isinstance(value, list | tuple) else [value]
        return any(
            type(item).__name__ in self.subjects and type(item).__module__.startswith("velodrome.")
            for item in values
        )


def named(frame: FrameType) -> str:
    """Return a frame's file, as a path below src/velodrome."""
    return str(Path(frame.f_code.co_filename).relative_to(SOURCE))


def floor(module: str) -> int:
    """Return how high the room of a module lies; what is in none lies on top."""
    room = module.partition("/")[0].removesuffix(".py")
    return next((number for number, rooms in enumerate(FLOORS) if room in rooms), len(FLOORS))


@contextlib.contextmanager
def watched(walk: Walk) -> Iterator[None]:
    """Look at every call on every thread meanwhile; what is printed is kept back."""
    with contextlib.redirect_stdout(io.StringIO()):
        threading.setprofile(walk.look)
        sys.setprofile(walk.look)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]


def command(*words: str) -> None:
    """Run a command of velodrome in this process."""
    from velodrome.cli.main import main  # noqa: PLC0415

    sys.argv = ["velodrome", *words]
    with contextlib.suppress(SystemExit):
        main()


def compare() -> Walk:
    """Compare an app of a few lines on two stacks, and follow it."""
    walk = Walk(SUBJECTS["compare"])
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "shop.py").write_text(APP, encoding="utf-8")
        words = ["shop:application", "--cwd", folder, "--stack", "waitress", "--stack", "gunicorn-sync"]
        with watched(walk):
            command("compare", *words, "-z", "0.5s", "--blocks", "1", "--out", f"{folder}/run")
    return walk


def claim() -> Walk:
    """Judge a stored run of a study with claims, and follow them."""
    walk = Walk(SUBJECTS["claim"])
    with tempfile.TemporaryDirectory() as folder:
        words = ["articles/asyncio-http", "--quick", "--only", "small/*", "--out", f"{folder}/run"]
        with contextlib.redirect_stdout(io.StringIO()):
            command("run", *words)
        with watched(walk):
            command("judge", f"{folder}/run")
    return walk


def request() -> list[str]:
    """Return the engine's files on the way of a request, as its first page lists them; each must exist.

    Where a request takes one of two ways (`this.rs` or `that.rs`), both are one step.
    """
    page = (ENGINE / "lib.rs").read_text(encoding="utf-8").replace("\n//! ", " ")
    way = re.search(r"To follow one request.*", page)
    steps = re.findall(r"`[\w/]+\.rs`(?: or `[\w/]+\.rs`)*", way[0]) if way else []
    files = [file for step in steps for file in re.findall(r"`([\w/]+\.rs)`", step)]
    missing = [file for file in files if not (ENGINE / file).exists()]
    if missing or not files:
        sys.exit(
            f"crates/engine/src/lib.rs lists no way of a request, or files that are not there: {missing}"
        )
    return [step.replace("`", "") for step in steps]


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "request":
        way, climbs = request(), []
    elif what in ("compare", "claim"):
        walked = compare() if what == "compare" else claim()
        way, climbs = walked.modules, walked.climbs
    else:
        sys.exit(__doc__)
    print("\n".join(f"{number:3}  {module}" for number, module in enumerate(way, 1)))
    print(f"{len(way)} files, {len(climbs)} climbs")
    print("\n".join(f"     {low} -> {high}" for low, high in climbs))
