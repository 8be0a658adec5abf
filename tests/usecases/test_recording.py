"""The run folder of a search: all that was measured is in it, by start of the server, and it is gone on with."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.judge import made

from velodrome.model.errors import RaceInterruptedError, ResultsExistError, StudyChangedError
from velodrome.model.measurement import Failed, FailureKind, Purpose
from velodrome.model.quantity import Interval
from velodrome.model.results import Header, Result, Sought
from velodrome.run.racing import store
from velodrome.usecases.recording import Record, cold_start, cold_starts, header, open_record

TRIAL = made.trial("uvicorn")
SOUGHT = Sought("tune", ("p99 < 20ms",), budget_s=60.0)


def begun(sought: Sought = SOUGHT) -> Header:
    return header(TRIAL, sought, "capacity of hello", (TRIAL.contestant,))


def keep(record: Record, boot: int, rising: float | None = None) -> Result:
    of = record.number(made.trial("uvicorn", load=made.OPEN))
    return record.keep(made.measured(of, 100.0), boot, Purpose.RATE, rising)


def test_what_is_kept_is_on_the_disk_with_its_start_of_the_server_and_why_it_was_made(tmp_path: Path) -> None:
    with open_record(tmp_path / "run", begun()) as record:
        boot = record.next_boot()
        record.ask()
        keep(record, boot)
        keep(record, boot, rising=12.5)  # once more, under the same number
        record.ask()
        last = keep(record, record.next_boot())
        found = store.read(tmp_path / "run")
    assert list(found.trials) == record.results
    steps = [each.step for each in found.trials if each.step]
    assert [(step.number, step.boot, step.rising_per_s) for step in steps] == [
        (1, 1, None),
        (1, 1, 12.5),
        (2, 2, None),
    ]
    assert last.step is not None
    assert last.step.purpose is Purpose.RATE
    assert found.header.sought == SOUGHT


def test_a_search_goes_on_where_it_ended_with_numbers_that_nothing_has_yet(tmp_path: Path) -> None:
    with open_record(tmp_path / "run", begun()) as record:
        record.ask()
        first = keep(record, record.next_boot())
    with open_record(
        tmp_path / "run", begun(Sought("tune", ("p99 < 20ms",), budget_s=90.0)), resume=True
    ) as record:
        assert record.results == [first]
        assert first.step is not None
        assert record.spent_s >= first.step.spent_s
        record.ask()
        second = keep(record, record.next_boot())
    assert second.step is not None
    assert (second.step.number, second.step.boot, second.trial.block) == (2, 2, 1)
    assert len(store.read(tmp_path / "run").trials) == 2


def test_a_search_for_something_else_does_not_go_on_in_its_folder(tmp_path: Path) -> None:
    with open_record(tmp_path / "run", begun()) as record:
        keep(record, record.next_boot())
    other = begun(Sought("tune", ("p99 < 50ms",)))
    with (
        pytest.raises(StudyChangedError, match="the search's conditions changed"),
        open_record(tmp_path / "run", other, resume=True),
    ):
        pass
    with pytest.raises(ResultsExistError), open_record(tmp_path / "run", begun()):
        pass


def test_of_a_search_that_measured_nothing_no_folder_is_left(tmp_path: Path) -> None:
    with open_record(tmp_path / "run", begun()) as record:
        failed = Failed(TRIAL, store.now(), FailureKind.START, "it does not start")
        record.keep(failed, record.next_boot(), Purpose.ALONE)
    assert not (tmp_path / "run").exists()


def test_what_was_measured_before_an_interruption_is_kept_and_reported(tmp_path: Path) -> None:
    def interrupted() -> None:
        with open_record(tmp_path / "run", begun()) as record:
            keep(record, record.next_boot())
            raise KeyboardInterrupt

    with pytest.raises(RaceInterruptedError, match="--resume"):
        interrupted()
    assert len(store.read(tmp_path / "run").trials) == 1


def test_a_capacity_goes_on_within_the_budget_and_loads_it_began_with(tmp_path: Path) -> None:
    began = Sought("capacity", ("p99 < 20ms",), budget_s=60.0, seconds=3.0)
    with open_record(tmp_path / "run", begun(began)) as record:
        keep(record, record.next_boot())
    for name, other in (
        ("budget_s", Sought("capacity", ("p99 < 20ms",), budget_s=90.0, seconds=3.0)),
        ("seconds", Sought("capacity", ("p99 < 20ms",), budget_s=60.0, seconds=1.0)),
    ):
        with (
            pytest.raises(StudyChangedError, match=f"the search's {name} changed"),
            open_record(tmp_path / "run", begun(other), resume=True),
        ):
            pass


def test_starts_are_counted_once_however_many_loads_each_carried() -> None:
    record = Record()
    for took_s, loads in ((0.5, 3), (0.9, 1), (0.7, 2)):
        boot = record.next_boot()
        for _ in range(loads):
            record.ask()
            of = record.number(made.trial("uvicorn", load=made.OPEN))
            found = made.measured(of, 100.0)
            found = replace(found, server=replace(found.server, boot_s=took_s))
            record.keep(found, boot, Purpose.RATE)
    assert cold_starts(record.results) == (0.5, 0.9, 0.7)
    assert cold_start(cold_starts(record.results)) == Interval(0.5, 0.7, 0.9)
    assert cold_start(()) is None
