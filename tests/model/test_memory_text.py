import pytest

from velodrome.model.amounts import memory_bytes


@pytest.mark.parametrize(
    ("text", "count"),
    [("512MB", 512_000_000), ("1g", 2**30), ("1.5 GiB", 3 * 2**29), ("64k", 65_536), ("1GB", 10**9)],
)
def test_an_amount_is_read(text: str, count: int) -> None:
    assert memory_bytes(text) == count


@pytest.mark.parametrize("text", ["", "1", "lots", "-1g", "1t"])
def test_anything_else_says_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="write 512MB, 1GB, 512m or 1g"):
        memory_bytes(text)
