"""Published tables of a study, as its file tells them: figures that are shown beside what is measured here.

[[tables]]
title = "ghz -c 100 -n 10000, a call takes 10 ms"
metrics = ["throughput_rps", "mean_service_ms"]
loads = ["closed-1x100-n10000-ghz", "closed-1x100"]
rows = [
  {of = "hello/threads", published = [3746.87, 26.34]},
  {of = "hello/gevent", published = [1913.44, "about twice that"]},
]
"""

from typing import Any

from velodrome.model.claim import PublishedRow, PublishedTable
from velodrome.model.metric import METRICS
from velodrome.model.study import Study
from velodrome.plan.cells import Cells
from velodrome.plan.findings import Findings, nearest
from velodrome.plan.schema import PublishedRowTable, PublishedTableTable
from velodrome.plan.toml_map import Path


def read_tables(entries: list[Any], at: Path, study: Study, findings: Findings) -> tuple[PublishedTable, ...]:
    """Return the published tables that a list of tables tells; what is wrong is in `findings`."""
    read = [_table(entry, (*at, index), study, findings) for index, entry in enumerate(entries)]
    return tuple(one for one in read if one)


def _table(entry: object, at: Path, study: Study, findings: Findings) -> PublishedTable | None:
    before = findings.count
    table = findings.check(PublishedTableTable, entry, at)
    if table is None:
        return None
    for index, metric in enumerate(table.metrics):
        if metric not in METRICS:
            findings.add((*at, "metrics", index), f"'{metric}' is no metric; {nearest(metric, METRICS)}")
    rows = []
    for index, one in enumerate(table.rows):
        row = _row(one, (*at, "rows", index), tuple(table.loads), study, findings)
        if row and len(row.published) != len(table.metrics):
            told = f"{len(row.published)} figures stand for {len(table.metrics)} metrics"
            findings.add(
                (*at, "rows", index, "published"), f'{told}; give one for each, "" where none is told'
            )
        rows.append(row)
    if findings.count > before:
        return None
    return PublishedTable(
        table.title, tuple(table.metrics), tuple(row for row in rows if row), tuple(table.loads)
    )


def _row(
    entry: object, at: Path, loads: tuple[str, ...], study: Study, findings: Findings
) -> PublishedRow | None:
    row = findings.check(PublishedRowTable, entry, at)
    if row is None:
        return None
    cells = Cells(study, findings)
    there = cells.found(row.of, (*at, "of"))
    if there is None:
        return None
    place = "loads" if row.loads else "of"
    for load in row.loads or loads:
        cells.check_load(load, there, (*at, place))
    return PublishedRow(row.of, tuple(one if one != "" else None for one in row.published), tuple(row.loads))
