"""The files that `velodrome load` writes beside what it shows; what writes one is imported when it is asked for."""

from __future__ import annotations

import os

from velodrome.cli._declared import Annotated, Option

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

Hdr = Annotated[
    str | None, Option("--hdr", metavar="PATH", help="Write the histograms as an HdrHistogram log.")
]
Csv = Annotated[str | None, Option("--csv", metavar="PATH", help="Write a line for each second.")]
Percentiles = Annotated[
    str | None,
    Option(
        "--percentiles",
        metavar="PATH",
        help="Write percentiles from due as HdrHistogram's plotters read them and, as NAME.sent.txt, from sent.",
    ),
]


class Files:
    """Those that were asked for."""

    def __init__(self, hdr: str | None, csv: str | None, percentiles: str | None) -> None:
        self.hdr, self.csv, self.percentiles = hdr, csv, percentiles

    @property
    def given(self) -> dict[str, str]:
        """Return them by their options."""
        every = {"--hdr": self.hdr, "--csv": self.csv, "--percentiles": self.percentiles}
        return {option: path for option, path in every.items() if path is not None}


def check(files: Files) -> None:
    """See that files can be written, without writing any. Raises OutputPathError for the first that cannot."""
    for option, path in files.given.items():
        if why := _obstacle(path):
            from velodrome.model.errors import OutputPathError  # noqa: PLC0415

            raise OutputPathError(option, path, why)


def _obstacle(path: str) -> str:
    """Return why a file cannot be written; empty: it can, as far as can be told."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        return "it is a folder"
    if not os.path.isdir(folder):
        return f"there is no folder {folder}"
    if os.path.exists(path):
        return "" if os.access(path, os.W_OK) else "it is not yours to write"
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"nothing may be written in {folder}"


def write(document: Mapping[str, Any], files: Files) -> None:
    """Write the files asked for. Raises OutputError for one that cannot be written."""
    from pathlib import Path  # noqa: PLC0415

    if files.hdr is not None:
        from velodrome.report import load_files  # noqa: PLC0415

        load_files.write_hlog(Path(files.hdr), document)
    if files.csv is not None:
        from velodrome.report import load_files  # noqa: PLC0415

        load_files.write_csv(Path(files.csv), document)
    if files.percentiles is not None:
        path = Path(files.percentiles)
        _write_percentiles(path, document, "due")
        _write_percentiles(path.with_name(f"{path.stem}.sent{path.suffix or '.txt'}"), document, "sent")


def _write_percentiles(path: Path, document: Mapping[str, Any], span: str) -> None:
    from velodrome.judge.histograms import decode  # noqa: PLC0415
    from velodrome.report import load_files  # noqa: PLC0415
    from velodrome.report.json import save  # noqa: PLC0415

    histogram = decode(document["hdr"][span])
    values = [value / 1e6 for value in histogram.highest.tolist()]
    remark = f"from {span}, milliseconds. {document['limit']['sentence']}"
    save(path, "\n".join(load_files.percentile_lines(values, histogram.counts.tolist(), remark)) + "\n")
