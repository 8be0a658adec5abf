"""Which files `velodrome load` would write are known, and checked, before anything is sent."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.judge.made import encode
from tests.report.pipes import reader

from velodrome.cli._load_outputs import Files, check_files, check_paths, write_files
from velodrome.model.errors import OutputPathError

pytestmark = pytest.mark.unit


def document() -> dict[str, Any]:
    return {
        "hdr": {"due": encode([2_000_000] * 3), "sent": encode([1_000_000] * 4)},
        "limit": {"sentence": "Limited by: schedule."},
    }


def test_two_outputs_onto_one_file_are_refused(tmp_path: Path) -> None:
    path, link = tmp_path / "a.csv", tmp_path / "link.csv"
    link.symlink_to("a.csv")
    for other in (path, link, tmp_path / "." / "a.csv"):
        with pytest.raises(OutputPathError, match="--hdr writes it too") as refused:
            check_files(Files(hdr=str(path), csv=str(other), percentiles=None))
        assert refused.value.exit_code == 2
    check_files(Files(hdr=str(path), csv=str(tmp_path / "b.csv"), percentiles=None))
    check_files(Files(hdr="/dev/null", csv="/dev/null", percentiles="/dev/null"))
    with pytest.raises(OutputPathError, match="--out writes it too"):
        check_paths([("--out", path), ("--html", None), ("--junit", path)])


def test_the_second_table_of_percentiles_is_checked_too(tmp_path: Path) -> None:
    percentiles = str(tmp_path / "p.hgrm")
    with pytest.raises(OutputPathError, match="--csv writes it too"):
        check_files(Files(None, str(tmp_path / "p.sent.hgrm"), percentiles))
    (tmp_path / "p.sent.hgrm").mkdir()
    with pytest.raises(OutputPathError, match=r"p\.sent\.hgrm cannot be written: it is a folder"):
        check_files(Files(None, None, percentiles))


@pytest.mark.parametrize(
    ("name", "beside"), [("p.hgrm", "p.sent.hgrm"), ("p", "p.sent.txt"), ("a.b/p", "a.b/p.sent.txt")]
)
def test_the_second_table_of_percentiles_stands_beside_the_first(
    tmp_path: Path, name: str, beside: str
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    write_files(document(), Files(None, None, str(tmp_path / name)))
    assert "Total count    =            3" in (tmp_path / name).read_text()
    assert "Total count    =            4" in (tmp_path / beside).read_text()


def test_a_pipe_gets_both_tables_of_percentiles(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    files = Files(None, None, str(path))
    check_files(files)
    with reader(path) as heard:
        write_files(document(), files)
    assert heard[0].count("Total count") == 2
    assert os.listdir(tmp_path) == ["fifo"]
