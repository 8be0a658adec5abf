"""A finished trial is never lost, and what cannot be read is refused with a reason."""

import json
import os
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.run import made

from velodrome.model import results, secrets
from velodrome.model.app import App, Request
from velodrome.model.errors import (
    OutputError,
    ResultsError,
    ResultsExistError,
    ResultsInUseError,
    StudyChangedError,
)
from velodrome.model.measurement import Failed, FailureKind
from velodrome.model.results import Header
from velodrome.model.study import Question
from velodrome.run import cache
from velodrome.run.apps import serving
from velodrome.run.racing import store
from velodrome.run.racing.store import Store

ONE = made.measurement(made.trial(recipe=made.MIXED))
TWO = made.failed(made.trial(load=made.OPEN, block=1))


def test_what_is_written_is_read_back_equal(tmp_path: Path) -> None:
    with Store.create(tmp_path / "new" / "folder", made.header()) as writing:
        writing.append(ONE)
        writing.append(TWO)
    found = store.read(tmp_path / "new" / "folder")
    assert found.header == made.header()
    assert found.trials == (ONE, TWO)
    assert not found.torn


def test_how_a_run_was_begun_is_read_without_its_results(tmp_path: Path) -> None:
    with Store.create(tmp_path, made.header()) as writing:
        writing.append(ONE)
    with (tmp_path / store.NAME).open("a") as file:
        file.write("damaged\n")
    assert store.read_header(tmp_path) == made.header()
    with pytest.raises(ResultsError, match="No such file"):
        store.read_header(tmp_path / "nowhere")


def sealed(token: str) -> Header:
    """Return how a run is begun whose request has a token."""
    sealed_request = serving.seal_request(Request("pay", f"/pay?access_token={token}"))
    app = App("shop:app", "wsgi", "/python", "/shop", requests=(sealed_request,))
    question = Question("shop", app.recipe, (made.CLOSED,), app=app)
    return replace(made.header(), study=replace(made.header().study, questions=(question,)))


def test_a_run_is_resumed_with_the_same_secrets_and_with_no_others(tmp_path: Path) -> None:
    with Store.create(tmp_path, sealed("hush-hush-1")):
        pass
    stored = (tmp_path / store.NAME).read_text()
    assert "hush" not in stored
    begun, _ = Store.resume(tmp_path, sealed("hush-hush-1"))
    begun.close()
    with pytest.raises(StudyChangedError) as refused:
        Store.resume(tmp_path, sealed("hush-hush-2"))
    assert refused.value.differences == ("the secrets of pay are others than they were; give the same again",)


def test_a_run_whose_fingerprints_are_of_another_key_is_not_taken_for_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.create(tmp_path, sealed("hush-hush-1")):
        pass
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "of another user"))
    with pytest.raises(
        StudyChangedError, match="cannot be seen, as the key of their fingerprints is another"
    ):
        Store.resume(tmp_path, sealed("hush-hush-1"))


def test_what_was_stored_without_fingerprints_is_read(tmp_path: Path) -> None:
    with Store.create(tmp_path, sealed("hush-hush-1")):
        pass
    file = tmp_path / store.NAME
    header = json.loads(file.read_text())
    (request,) = header["study"]["questions"][0]["app"]["requests"]
    del request["fingerprint"]
    file.write_text(json.dumps(header) + "\n")
    (question,) = store.read(tmp_path).header.study.questions
    assert question.app is not None
    assert question.app.requests[0].fingerprint == ""


def test_no_text_of_a_line_has_a_secret_in_it_and_what_it_is_found_by_stays(tmp_path: Path) -> None:
    secrets.of_variable("A_TOKEN", TWO.trial.contestant.stack)
    secrets.of_variable("B_TOKEN", "hush-hush")
    failed = replace(TWO, reason="it said hush-hush", last_lines=("x hush-hush", "y"))
    study = replace(made.header().study, sources=("https://me:hush@example.com",))
    with Store.create(tmp_path, replace(made.header(), study=study)) as writing:
        writing.append(failed)
    assert "hush" not in (tmp_path / store.NAME).read_text()
    (found,) = store.read(tmp_path).trials
    assert isinstance(found, Failed)
    assert found.trial == TWO.trial
    assert found.last_lines == ("x •••", "y")


def test_what_is_installed_beside_an_app_is_stored_once(tmp_path: Path) -> None:
    app = App("shop:app", "wsgi", "/python", "/shop", packages={"flask": "3.1.2"})
    study = replace(made.header().study, questions=(Question("shop", app.recipe, (made.CLOSED,), app=app),))
    header = replace(made.header(), study=study)
    measurement = made.measurement(replace(made.trial(recipe=app.recipe), question="shop", app=app))
    other = made.measurement(
        replace(measurement.trial, block=1, app=replace(app, packages={"flask": "2.0.0"}))
    )
    with Store.create(tmp_path, header) as writing:
        writing.append(measurement)
        writing.append(other)
    with Store.resume(tmp_path, header)[0] as again:
        again.append(replace(measurement, trial=replace(measurement.trial, block=2)))
    assert (tmp_path / store.NAME).read_text().count('"flask":"3.1.2"') == 1
    found = store.read(tmp_path).trials
    assert [result.trial.app.packages["flask"] for result in found if result.trial.app] == [
        "3.1.2",
        "2.0.0",
        "3.1.2",
    ]
    with (tmp_path / store.NAME).open("a") as file:
        file.write(results.dump(measurement) + "\n")  # as they were written before
    assert store.read(tmp_path).trials[-1] == measurement


def test_a_new_run_never_writes_over_an_old_one(tmp_path: Path) -> None:
    Store.create(tmp_path, made.header()).close()
    with pytest.raises(ResultsExistError, match="--resume"):
        Store.create(tmp_path, made.header())


@pytest.mark.parametrize("cut", [1, 5, 400])
def test_a_torn_last_line_is_cut_and_the_rest_kept(tmp_path: Path, cut: int) -> None:
    with Store.create(tmp_path, made.header()) as writing:
        writing.append(ONE)
        whole = (tmp_path / store.NAME).stat().st_size
        writing.append(ONE)
    os.truncate(tmp_path / store.NAME, whole + cut)
    assert store.read(tmp_path).torn
    resumed, found = Store.resume(tmp_path, made.header())
    with resumed:
        assert found.trials == (ONE,)
        assert (tmp_path / store.NAME).stat().st_size == whole
        resumed.append(TWO)
    assert store.read(tmp_path).trials == (ONE, TWO)


@pytest.mark.parametrize("kept", [0, 3, 60])
def test_a_file_killed_before_its_header_was_whole_is_begun_again(tmp_path: Path, kept: int) -> None:
    Store.create(tmp_path, made.header()).close()
    os.truncate(tmp_path / store.NAME, kept)
    resumed, found = Store.resume(tmp_path, made.header())
    with resumed:
        resumed.append(ONE)
    assert found.trials == ()
    assert store.read(tmp_path).trials == (ONE,)


def test_a_trial_run_again_counts_once_with_its_last_line(tmp_path: Path) -> None:
    failed = made.failed(ONE.trial, FailureKind.INSTALL)
    with Store.create(tmp_path, made.header()) as writing:
        for result in (failed, TWO, ONE):
            writing.append(result)
    assert store.read(tmp_path).trials == (TWO, ONE)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it is empty"),
        ("PK\x03\x04", "does not begin with a header"),
        ("hello\n", "line 1: it is not JSON"),
        ("[1]\n", "line 1: it is not a JSON object"),
        ('{"schema": "oha"}\n', "its schema is 'oha', so it holds no results of velodrome"),
        (
            '{"schema": "velodrome/results/0"}\n',
            "velodrome/results/0, this velodrome reads velodrome/results/1",
        ),
        ('{"schema": "velodrome/results/1"}\n', "its header is damaged: KeyError 'study'"),
        ('{"schema": "velodrome/results/1", "study": 3}\n', "its header is damaged"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_the_reason(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / store.NAME).write_text(text)
    with pytest.raises(ResultsError, match=r"cannot read .*results\.jsonl") as raised:
        store.read(tmp_path)
    assert sentence in str(raised.value)


def test_a_file_that_is_not_there_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="No such file"):
        store.read(tmp_path / "nowhere")
    with pytest.raises(ResultsError, match="No such file"):
        Store.resume(tmp_path / "nowhere", made.header())


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('"kind":"failed"', '"kind":"guess"', "its kind is 'guess'"),
        (
            '"started_at":"2026-11-20T12:00:00+00:00"',
            '"started_at":7',
            "started_at: Input should be a valid string",
        ),
        ('"do":"body"', '"do":"dance"', "KeyError 'dance'"),
    ],
)
def test_damage_before_the_end_is_refused_with_its_line(
    tmp_path: Path, before: str, after: str, sentence: str
) -> None:
    with Store.create(tmp_path, made.header()) as writing:
        writing.append(TWO)
    lines = (tmp_path / store.NAME).read_text().splitlines(keepends=True)
    assert before in lines[1]
    lines[1] = lines[1].replace(before, after)
    (tmp_path / store.NAME).write_text("".join(lines))
    with pytest.raises(ResultsError) as raised:
        store.read(tmp_path)
    assert raised.value.line == 2
    assert sentence in str(raised.value)


def test_a_changed_study_or_machine_cannot_be_resumed(tmp_path: Path) -> None:
    Store.create(tmp_path, made.header()).close()
    for header, sentence in (
        (made.header(seed=2), "seed 1, now 2"),
        (made.header(cpu="another CPU"), "cpu a CPU, now another CPU"),
    ):
        with pytest.raises(StudyChangedError, match=sentence):
            Store.resume(tmp_path, header)
    Store.resume(tmp_path, made.header(governor="powersave"))[0].close()


def test_two_velodromes_cannot_write_one_file(tmp_path: Path) -> None:
    with Store.create(tmp_path, made.header()), pytest.raises(ResultsInUseError, match="another velodrome"):
        Store.resume(tmp_path, made.header())


def test_a_folder_that_cannot_be_made_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"file/results\.jsonl: .*file is a file"):
        Store.create(tmp_path / "file", made.header())


FULL = """
import resource, sys
from pathlib import Path
sys.path[:0] = {path!r}
from tests.run import made
from velodrome.model.errors import OutputError
from velodrome.run.racing.store import Store
writing = Store.create(Path({folder!r}), made.header())
result = made.measurement(made.trial(recipe=made.MIXED))
writing.append(result)
size = (Path({folder!r}) / "results.jsonl").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
try:
    writing.append(result)
except OutputError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
writing.append(made.failed(made.trial(block=1)))
"""


def test_a_full_disk_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    # In a process of its own: the limit is the process's. Python ignores SIGXFSZ, so it comes as EFBIG.
    assert signal.getsignal(signal.SIGXFSZ) is signal.SIG_IGN
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    code = FULL.format(path=[p for p in sys.path if p], folder=str(tmp_path))
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "cannot write" in finished.stdout
    assert "File too large" in finished.stdout
    found = store.read(tmp_path)
    assert found.trials == (ONE, made.failed(made.trial(block=1)))
    assert not found.torn


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full (Linux)")
def test_no_space_left_is_reported_as_such(tmp_path: Path) -> None:
    (tmp_path / store.NAME).symlink_to("/dev/full")
    writing = Store(tmp_path / store.NAME, os.open(tmp_path / store.NAME, os.O_RDWR), 0)
    with writing, pytest.raises(OutputError, match=r"No space left on device\. Free some space"):
        writing.append(ONE)
