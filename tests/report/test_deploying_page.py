"""The page on what is pasted names every difference from what was measured."""

from pathlib import Path

from velodrome.guest import catalog

PAGE = Path(__file__).parents[2] / "docs" / "deploying.md"


def test_every_option_that_is_not_pasted_is_named() -> None:
    text = PAGE.read_text()
    options = {option for server in catalog.servers().values() for option in server.race_only}
    assert options
    assert not [option for option in options if f"`{option}`" not in text]
