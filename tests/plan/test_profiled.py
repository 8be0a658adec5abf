"""`--profile` asks for a profile of every question, under the load in which all do the same work."""

from dataclasses import replace

from tests.run import made

from velodrome.model.load import Closed, Load, Open
from velodrome.plan.matrix import SECONDS, with_profiles

STUDY = made.study()


def test_a_question_is_profiled_under_its_open_loop() -> None:
    profile = with_profiles(STUDY).questions[0].profile
    assert profile == replace(made.OPEN, duration_s=SECONDS)


def test_without_one_its_first_load_serves_by_time_and_by_our_own_driver() -> None:
    load = Load(Closed(4), 1.0, requests=10, driver="ab")
    study = replace(STUDY, questions=(replace(STUDY.questions[0], loads=(load,)),))
    assert with_profiles(study).questions[0].profile == Load(Closed(4), SECONDS)


def test_a_profile_of_the_studys_own_stays() -> None:
    own = Load(Open(7), 3.0)
    study = replace(STUDY, questions=(replace(STUDY.questions[0], profile=own),))
    assert with_profiles(study).questions[0].profile == own
