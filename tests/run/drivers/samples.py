"""What real tools printed, kept: `samples/TOOL/CASE/` holds `output`, `errors`, `status` and what else it left.

`python -m tests.run.drivers.record` writes them anew, with the tools of this machine.
"""

from pathlib import Path

from velodrome.run.drivers.foreign import Finished

FOLDER = Path(__file__).with_name("samples")
OWN = ("output", "errors", "status", "told.json")


def cases() -> list[str]:
    """Return every `TOOL/CASE`."""
    return sorted(str(path.parent.relative_to(FOLDER)) for path in FOLDER.glob("*/*/status"))


def finished(case: str) -> Finished:
    """Return a tool's run as it was."""
    folder = FOLDER / case
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in OWN}
    return Finished(
        argv=(case.partition("/")[0],),
        status=int((folder / "status").read_text()),
        output=(folder / "output").read_text(),
        errors=(folder / "errors").read_text(),
        files=files,
        cpu_user_s=0.25,
        cpu_sys_s=0.25,
        wall_s=1.0,
    )


def keep(case: str, run: Finished) -> None:
    """Write a run down."""
    folder = FOLDER / case
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("output", run.output), ("errors", run.errors), ("status", str(run.status))):
        (folder / name).write_text(text)
    for name, data in run.files.items():
        (folder / name).write_bytes(data)
