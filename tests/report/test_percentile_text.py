from itertools import pairwise

import pytest

from velodrome.report.load_files import percentile_lines


def rows(text: list[str]) -> list[tuple[float, float, int]]:
    found = []
    for line in text[2:]:
        if not line.startswith("#"):
            value, share, count, *_ = line.split()
            found.append((float(value), float(share), int(count)))
    return found


def test_percentiles_grow_denser_towards_the_largest() -> None:
    values = [number / 10 for number in range(1, 1_001)]
    text = percentile_lines(values, [1] * 1_000)
    assert text[0].split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    found = rows(text)
    assert [share for _, share, _ in found[:6]] == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    assert found[5] == (50.0, 0.5, 500)
    assert found[-1] == (100.0, 1.0, 1_000)
    assert all(a <= b for a, b in pairwise(found))
    assert "#[Mean    =       50.050, StdDeviation   =       28.867]" in text
    assert "#[Max     =      100.000, Total count    =         1000]" in text


def test_a_remark_stands_at_the_end() -> None:
    assert percentile_lines([1.0], [3], "from due")[-1] == "#[from due]"


def test_nothing_measured_is_an_empty_table() -> None:
    assert rows(percentile_lines([], [])) == []
    assert "Total count    =            0" in percentile_lines([], [])[-1]
