"""Whether links can be tried here: they need rights, and netem needs a kernel that has it."""

import pytest

from velodrome.model.errors import LinkRefusedError
from velodrome.run import link


def _refusal() -> str:
    try:
        link.refuse_impossible()
    except LinkRefusedError as refused:
        return str(refused)
    return ""


REFUSAL = _refusal()
NEEDS_LINK = pytest.mark.skipif(bool(REFUSAL), reason=REFUSAL or "links are possible")
NEEDS_NETEM = pytest.mark.skipif(bool(REFUSAL) or not link.available(), reason="this kernel has no sch_netem")
JOINED_BY = pytest.mark.parametrize(
    "joined_by", [pytest.param("relay", marks=NEEDS_LINK), pytest.param("netem", marks=NEEDS_NETEM)]
)
