"""Settings of a stack, in each form that people write them in."""

import pytest

from velodrome.guest import catalog
from velodrome.guest.stack import KnobValue
from velodrome.model.errors import BadOptionError, UnknownKnobError, UsageError
from velodrome.usecases.terms import Knobs, of_words, read

GTHREAD = catalog.stack("gunicorn-gthread")
UVICORN = catalog.stack("uvicorn")


def test_what_is_off_by_default_can_be_set_to_off_and_says_so_of_a_word() -> None:
    assert read(GTHREAD, {"preload": 0, "max_requests": "0"}) == {}
    assert read(GTHREAD, {"preload": "1"}) == {"preload": 1}
    with pytest.raises(BadOptionError, match=r"preload true: .* 0 is off"):
        read(GTHREAD, {"preload": "true"})


def test_numbers_are_numbers_and_defaults_are_left_out() -> None:
    assert of_words(GTHREAD, ["workers=3", "threads=16"]) == {"workers": 3, "threads": 16}
    default = GTHREAD.knobs["workers"]
    assert read(GTHREAD, {"workers": default, "threads": "16"}) == {"threads": 16}
    assert Knobs(workers=3, others=("backlog=64",)).of(GTHREAD) == {"workers": 3, "backlog": 64}


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ({"worker": 4}, UnknownKnobError, "setting of uvicorn"),
        ({"workers": 0}, BadOptionError, "workers 0: give a whole number from 1 on"),
        ({"workers": "abc"}, BadOptionError, "workers abc: give a whole number"),
        ({"workers": True}, BadOptionError, "workers True"),
        ({"workers": "²"}, BadOptionError, "workers ²"),
        ({"loop": "trio"}, BadOptionError, "uvicorn has "),
    ],
)
def test_what_a_stack_does_not_take_is_refused(
    given: dict[str, KnobValue], error: type[UsageError], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        read(UVICORN, given)
    assert sentence in str(caught.value)


def test_a_server_that_is_always_one_process_takes_one_worker_and_no_more() -> None:
    waitress = catalog.stack("waitress")
    assert Knobs(workers=1, threads=4).of(waitress) == Knobs(threads=4).of(waitress)
    with pytest.raises(UnknownKnobError, match="'workers' is not a setting of waitress"):
        Knobs(workers=2).of(waitress)


@pytest.mark.parametrize("word", ["workers", "workers=", "=4"])
def test_a_word_without_name_or_value_is_none(word: str) -> None:
    with pytest.raises(UnknownKnobError, match="write one of these as name=value"):
        of_words(UVICORN, [word])


@pytest.mark.parametrize(("name", "value"), [("workers", 3), ("threads", 3), ("loop", "asyncio")])
def test_a_setting_is_not_given_by_its_own_option_and_by_knob(name: str, value: KnobValue) -> None:
    others = (f"{name}={value}",)
    both = {
        "workers": Knobs(workers=2, others=others),
        "threads": Knobs(threads=2, others=others),
        "loop": Knobs(loop="uvloop", others=others),
    }
    with pytest.raises(BadOptionError, match=f"--knob {name}={value}: --{name} .* sets it too"):
        both[name].of(GTHREAD)
