"""What is read out of a folder that belongs to a foreign process: lines of JSON, and nothing that a link leads to."""

import json
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from velodrome.model.diagnosis import AS_IT_IS
from velodrome.run.instruments import allocations, heartbeat, processes, screens
from velodrome.run.instruments.standing import MOST_BYTES, Standing

pytestmark = pytest.mark.unit


def server(folder: Path) -> Standing:
    nothing = cast(Any, None)
    return Standing(nothing, nothing, nothing, folder)


def test_treatments_of_all_processes_are_known(tmp_path: Path) -> None:
    for pid, name in ((1, "nodelay"), (2, "logging")):
        (tmp_path / f"took-{pid}.jsonl").write_text(json.dumps({"took": name}) + "\n")
    assert server(tmp_path).took() == {"nodelay", "logging"}


def test_what_is_no_line_of_ours_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "heart-1.jsonl").write_bytes(
        b'{"at": 1}\n[]\n\xff\xfe\n{"at"\n' + b"[" * 100_000 + b'\n{"at": 2}\n'
    )
    assert server(tmp_path).read_lines() == [{"at": 1}, {"at": 2}]


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('{"at": "secret"}\n')
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "heart-1.jsonl").symlink_to(tmp_path / "secret")
    assert server(folder).read_lines() == []


def test_of_an_endless_file_only_so_much_is_read(tmp_path: Path) -> None:
    line = b'{"at": 1}\n'
    with open(tmp_path / "heart-1.jsonl", "wb") as file:
        file.write(line)
        file.truncate(4 * MOST_BYTES)
        file.seek(0, 2)
        file.write(line)
    assert server(tmp_path).read_lines() == [{"at": 1}]


def test_live_blocks_are_the_sum_of_what_processes_counted_for_this_time(tmp_path: Path) -> None:
    def counts(pid: int, *blocks: int) -> None:
        lines = [json.dumps({"number": number, "blocks": count}) for number, count in enumerate(blocks)]
        (tmp_path / f"blocks-{pid}.jsonl").write_text("\n".join(lines))

    counts(1, 100, 150)
    counts(2, 30, 35)
    assert server(tmp_path).live_blocks() == 130
    assert server(tmp_path).live_blocks() == 185
    assert server(tmp_path).live_blocks() is None, "nobody answers any more"


def test_what_processes_left_is_added_up_by_place_and_what_is_no_answer_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Loaded(Standing):
        def warm(self) -> None:
            pass

        def run_closed_loop(self, *_: Any, **__: Any) -> Any:
            return SimpleNamespace(load=SimpleNamespace(answers=10))

    def answer(pid: int, *kept: object) -> None:
        lines = [{"began": True}, {"kept": list(kept)}]
        (tmp_path / f"traced-{pid}.jsonl").write_text("\n".join(map(json.dumps, lines)))

    line = {"file": "shop.py", "line": 3, "text": "kept.append(order)", "bytes": 6000, "blocks": 5}
    answer(1, line, {**line, "line": 9, "bytes": 100})
    answer(2, line)
    answer(3, {**line, "bytes": "much"}, 4)
    answer(4, {**line, "file": "beside.py"})
    monkeypatch.setattr(processes, "helpers", lambda _: {4})
    nothing = cast(Any, None)
    server = Loaded(nothing, nothing, nothing, tmp_path)
    monkeypatch.setattr(allocations, "standing", lambda *_: nullcontext(server))
    found = allocations.kept(nothing, nothing, AS_IT_IS)
    assert [(line.place, line.bytes, line.blocks) for line in found.lines] == [
        ("shop.py:3", 12_000, 10),
        ("shop.py:9", 100, 5),
    ]
    assert (found.requests, found.each) == (10, 1200)


def test_calls_of_third_parties_take_what_most_of_those_since_then_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "helpers", lambda _: {2})
    called = [
        {"at": 4.0, "seconds": 9.0},
        *({"at": 5.0 + took, "seconds": took} for took in (0.03, 0.02, 0.04)),
    ]
    spoilt = [{"at": "then", "seconds": 1}, {"seconds": 1}, {"at": 6.0, "seconds": -1}]
    (tmp_path / "called-1.jsonl").write_text("\n".join(map(json.dumps, [*spoilt, *called])))
    (tmp_path / "called-2.jsonl").write_text(json.dumps({"at": 6.0, "seconds": 7.0}) + "\n")
    assert screens.called_ms(server(tmp_path), 5.0) == pytest.approx(30.0)
    assert screens.called_ms(server(tmp_path), 60.0) == 0.0


def test_collections_are_those_of_the_process_that_spends_most_on_them(tmp_path: Path) -> None:
    class Loaded(Standing):
        def run_closed_loop(self, *_: Any, **__: Any) -> Any:
            at = time.monotonic()
            for pid, spent in ((1, (0.2, 0.1)), (2, (0.25,))):
                lines = [{"gc": seconds, "at": at, "generation": 2, "pid": pid} for seconds in spent]
                lines += [{"gc": 9, "at": at - 60, "generation": 2, "pid": pid}]  # before the load
                lines += [{"gc": 9, "at": at, "generation": 1, "pid": pid}]  # of young objects
                (tmp_path / f"gc-{pid}.jsonl").write_text("\n".join(map(json.dumps, lines)))

    nothing = cast(Any, None)
    found = heartbeat.time_collections(Loaded(nothing, nothing, nothing, tmp_path), 8, 1.0)
    assert found.collections_s == pytest.approx(0.3)
    assert found.longest_s == 0.2
