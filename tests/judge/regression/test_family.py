import pytest

from velodrome.judge.statistics import holm


@pytest.mark.parametrize(
    ("alone", "in_all"),
    [
        ([], []),
        ([0.03], [0.03]),
        ([0.01, 0.04], [0.02, 0.04]),
        ([0.04, 0.01], [0.04, 0.02]),
        # the second is not found different before the first is, so neither is surer
        ([0.03, 0.02], [0.04, 0.04]),
        ([0.5, 0.9, 0.7], [1.0, 1.0, 1.0]),
    ],
)
def test_the_surest_of_n_counts_n_times_the_next_one_less(alone: list[float], in_all: list[float]) -> None:
    assert holm(alone) == pytest.approx(in_all)
