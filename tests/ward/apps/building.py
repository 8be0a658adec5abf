"""`built-per-request`: a template compiled, or a type adapter made, for each request; and cured."""

from answering import answering
from jinja2 import Environment
from pydantic import BaseModel, TypeAdapter

ITEM = "<li>{% if ROW.sold %}<s>{{ ROW.name | upper }}</s>{% else %}{{ ROW.name }}{% endif %}</li>"
PAGE = "".join(ITEM.replace("ROW", f"rows[{number}]") for number in range(12))
ROWS = [{"name": f"article {number}", "sold": number % 3 == 0} for number in range(12)]
ONCE = Environment(autoescape=True).from_string(PAGE)


class Row(BaseModel):
    name: str
    sold: bool


ADAPTER = TypeAdapter(list[Row])


async def renders_a_page_of_a_new_environment():
    Environment(autoescape=True).from_string(PAGE).render(rows=ROWS)


async def renders_and_makes_an_adapter():
    for _ in range(3):
        ONCE.render(rows=ROWS)
    TypeAdapter(list[Row] | dict[str, Row]).validate_python(ROWS)


async def renders():
    ONCE.render(rows=ROWS)
    ADAPTER.validate_python(ROWS)


severe, mild, cured = (
    answering(work) for work in (renders_a_page_of_a_new_environment, renders_and_makes_an_adapter, renders)
)
