"""Student's t, as tables have it, and had without the second that scipy's statistics take to import; wide intervals."""

import math
import subprocess
import sys

import pytest

from velodrome.judge.statistics import of_logs, student_t


@pytest.mark.parametrize(("freedom", "t"), [(1, 12.706), (4, 2.776), (10, 2.228), (1e6, 1.960)])
def test_it_is_that_of_the_tables(freedom: float, t: float) -> None:
    assert student_t(freedom) == pytest.approx(t, abs=5e-4)


def test_an_interval_of_logs_ends_where_numbers_can_still_be_printed_and_not_before() -> None:
    wide = of_logs(0.0, 500.0)
    assert (math.log(wide.low), math.log(wide.high)) == pytest.approx((-500, 500))
    wider = of_logs(0.0, 5_000.0)
    assert (math.log10(wider.low), math.log10(wider.high)) == pytest.approx((-300, 300))


@pytest.mark.integration
def test_a_search_of_connections_does_not_import_scipy_s_statistics() -> None:
    script = "import sys, velodrome.judge.search.connections; print('scipy.stats' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert ended.stdout == "False\n"
