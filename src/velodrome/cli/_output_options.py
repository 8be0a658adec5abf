"""The files that `velodrome load` writes beside what it shows; what writes one is imported when it is asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from velodrome.cli._declared import Option

Hdr = Annotated[Path | None, Option("--hdr", help="Write the histograms as an HdrHistogram log.")]
Csv = Annotated[Path | None, Option("--csv", help="Write a line for each second.")]
Percentiles = Annotated[
    Path | None,
    Option(
        "--percentiles",
        help="Write percentiles from due as HdrHistogram's plotters read them and, as NAME.sent.txt, from sent.",
    ),
]


@dataclass(frozen=True)
class Files:
    """Those that were asked for."""

    hdr: Path | None
    csv: Path | None
    percentiles: Path | None


def write(document: Mapping[str, Any], files: Files) -> None:
    """Write the files asked for. Raises OutputError for one that cannot be written."""
    if files.hdr is not None:
        from velodrome.report import hlog  # noqa: PLC0415

        hlog.write(files.hdr, document)
    if files.csv is not None:
        from velodrome.report import load_csv  # noqa: PLC0415

        load_csv.write(files.csv, document)
    if files.percentiles is not None:
        path = files.percentiles
        _write_percentiles(path, document, "due")
        _write_percentiles(path.with_name(f"{path.stem}.sent{path.suffix or '.txt'}"), document, "sent")


def _write_percentiles(path: Path, document: Mapping[str, Any], span: str) -> None:
    from velodrome.judge.histograms import decode  # noqa: PLC0415
    from velodrome.report import percentile_text  # noqa: PLC0415
    from velodrome.report.json import save  # noqa: PLC0415

    histogram = decode(document["hdr"][span])
    values = [value / 1e6 for value in histogram.highest.tolist()]
    remark = f"from {span}, milliseconds. {document['limit']['sentence']}"
    save(path, "\n".join(percentile_text.lines(values, histogram.counts.tolist(), remark)) + "\n")
