"""The page on method names every flag and the numbers the code uses."""

import re
from pathlib import Path

from velodrome.judge import answering, standings, statistics
from velodrome.model.measurement import FlagKind

PAGE = (Path(__file__).parents[2] / "docs/method.md").read_text()


def test_every_flag_is_listed_once() -> None:
    listed = re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert sorted(listed) == sorted(kind.value for kind in FlagKind)


def test_the_numbers_of_the_judge_are_those_on_the_page() -> None:
    for text in (
        f"**{statistics.NOISE * 100:g} %**",
        f"Weight {statistics.NOISE_DF:g}",
        f"at most {statistics.SHARED_DF:g}",
        f"a lead over {standings.MARGIN * 100:g} %",
        f"no lead over {standings.SETTLED * 100:g} % can hide",
        f"reach {answering.REACHED * 100:g} % of what",
        f"over {(answering.ABOVE - 1) * 100:.0f} % above its ceiling",
    ):
        assert text in PAGE, text
