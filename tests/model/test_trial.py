import pytest

from velodrome.guest import catalog
from velodrome.model.trial import Contestant

STACKS = catalog.stacks()


@pytest.mark.parametrize(
    ("contestant", "called"),
    [
        (Contestant("gunicorn-gthread", {"workers": 2, "threads": 4}), "gunicorn · gthread ×2, 4 threads"),
        (Contestant("uvicorn", {"loop": "asyncio", "workers": 2}), "uvicorn · asyncio ×2"),
        (Contestant("starlette-uvicorn", {"loop": "asyncio"}), "Starlette · uvicorn, asyncio"),
        (Contestant("tornado", {}, {"tornado": "5.1.1"}, "3.7"), "Tornado, Python 3.7, tornado 5.1.1"),
        (Contestant("gone", {"threads": 4}), "gone, 4 threads"),
    ],
)
def test_a_contestant_is_called_by_what_differs_from_its_stack(contestant: Contestant, called: str) -> None:
    assert contestant.called(STACKS.get(contestant.stack)) == called
