"""Steps become source: what cannot be served is refused at the start, and nothing is left to interpret."""

import dis
import linecache
import types
from collections.abc import Iterator

import pytest

from velodrome.guest.interfaces import asgi, socket_blocking, wsgi
from velodrome.guest.recipe import Body, Call, Query, Recipe, Sleep, Stream, Together, Write
from velodrome.guest.services.hello import recipe as hello


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)


def test_a_handler_of_hello_names_nothing_but_what_a_hand_written_one_would() -> None:
    code = wsgi.build(hello, "").__code__
    assert (code.co_names, code.co_varnames) == (("BODY",), ("environ", "start_response"))


def test_no_handler_reads_the_recipe_when_it_is_called() -> None:
    steps = (Sleep(1), Query(rows=3), Body(10))
    for interface in (wsgi, asgi):
        code = interface.build(Recipe("x", "x", steps), "").__code__
        names = {name for inner in nested(code) for name in inner.co_names}
        assert not names & {"recipe", "steps", "step", "getattr"}
        assert "sleep" in names


def test_a_handlers_source_shows_in_tracebacks_and_profiles() -> None:
    code = wsgi.build(Recipe("mine", "x", (Sleep(5), Body(10))), "").__code__
    assert code.co_filename.startswith("<velodrome wsgi mine")
    assert "sleep(0.005)" in "".join(linecache.getlines(code.co_filename))


def test_a_single_wait_is_not_a_loop_and_several_are() -> None:
    def opnames(times: int) -> set[str]:
        recipe = Recipe("x", "x", (Stream(chunks=times, chunk_bytes=1, every_ms=0),))
        return {op.opname for op in dis.get_instructions(asgi.build(recipe, ""))}

    assert "FOR_ITER" not in opnames(1)
    assert "FOR_ITER" in opnames(2)


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        ((Sleep(1),), "the last step must be body, stream or chat"),
        ((Call(5), Body(1)), "it calls a third party, but no upstream address is given"),
        ((Query(database="oracle"), Body(1)), "no database is called 'oracle'"),
        ((Query(database="redis"), Body(1)), "it asks redis, but VELODROME_REDIS names no address"),
        ((Write(driver="mysqldb"), Body(1)), "no client of sqlite is called 'mysqldb'"),
        ((Together(()), Body(1)), r"steps\[0\] \(together\): it has no steps to do at once"),
        ((Together((Sleep(5), Body(1))), Body(1)), r"steps\[0\].steps\[1\] \(body\): its place is outside"),
        (
            (Together((Sleep(-5),)), Body(1)),
            r"steps\[0\].steps\[0\] \(sleep\): ms is -5; it cannot be negative",
        ),
        ((Query(rows=0), Body(1)), "0 rows; the tables have 1 to"),
        ((Query(rows=9_999_999), Body(1)), "9999999 rows; the tables have 1 to"),
    ],
)
def test_a_recipe_that_cannot_be_served_is_refused_before_any_request(
    steps: tuple[object, ...], complaint: str
) -> None:
    for interface in (wsgi, asgi):
        with pytest.raises(ValueError, match=complaint):
            interface.build(Recipe("x", "x", steps), "")  # type: ignore[arg-type]


def test_an_answer_shorter_than_its_own_head_is_refused_before_any_request() -> None:
    with pytest.raises(ValueError, match="20 bytes on the wire; the head alone takes 57"):
        socket_blocking.build(Recipe("x", "x", (Body(20, on_wire=True),)), "")
