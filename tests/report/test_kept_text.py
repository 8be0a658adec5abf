"""What the cache holds, in lines."""

import json

from velodrome.model.kept import Damage, Kept, Stock
from velodrome.report import listing

NOW = 1_800_000_000.0
DAY_S = 86400.0


def kept(
    name: str = "0123456789abcdef", days: float = 0, what: str = "waitress", in_use: bool = False
) -> Kept:
    return Kept("envs", name, f"/c/envs/{name}", what, NOW - days * DAY_S, in_use, 72_000_000, 12_000_000)


def test_each_is_a_line_with_sizes_last_use_and_purpose() -> None:
    every = (kept(in_use=True), kept(days=0.4), kept(days=1.2), kept(days=40))
    shown = listing.cache_lines(Stock(every, 100_000_000, 40_000_000), "/c", NOW)
    used = ["in use", "today", "1 day ago", "40 days ago"]
    assert all(f" {when} " in line for line, when in zip(shown[1:5], used, strict=True))
    assert all("72 MB" in line and "12 MB" in line and "waitress" in line for line in shown[1:5])
    assert any("100 MB" in line and "60 MB" in line and "/c" in line for line in shown)


def test_a_clock_that_went_back_is_no_negative_age() -> None:
    assert "today" in listing.cache_lines(Stock((kept(days=-3),), 1, 1), "/c", NOW)[1]


def test_text_of_files_reaches_no_terminal_raw() -> None:
    harmful = kept(what="\x1b]0;OWNED\x07")
    stock = Stock((harmful,), 1, 1)
    lines = [
        *listing.cache_lines(stock, "/c", NOW),
        *listing.removed_lines(stock),
        *listing.verified_lines(1, [Damage(harmful, ("\x1b[31m is missing",))]),
    ]
    assert "\x1b" not in "".join(lines)
    assert "\x1b" not in listing.cache_document(stock, "/c")


def test_what_freed_nothing_says_who_keeps_it() -> None:
    lines = listing.removed_lines(Stock((kept(),), 72_000_000, 12_000_000))
    assert "12 MB" in lines[-1]
    assert "60 MB" in lines[-1]
    assert len(listing.removed_lines(Stock((), 0, 0))) == 1


def test_the_document_has_every_field() -> None:
    document = json.loads(listing.cache_document(Stock((kept(),), 5, 3), "/c"))
    assert (document["folder"], document["size_bytes"], document["freed_bytes"]) == ("/c", 5, 3)
    assert document["kept"][0]["last_used"] == NOW
