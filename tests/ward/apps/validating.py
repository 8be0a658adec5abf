"""`validation-cost`: a long list validated against its model again; cured by a response."""

from fastapi import FastAPI
from fastapi.responses import JSONResponse
from pydantic import BaseModel


class Article(BaseModel):
    number: int
    name: str
    price: float
    tags: list[str]


ROWS = [
    {"number": number, "name": f"article {number}", "price": number / 3, "tags": ["new", "red"]}
    for number in range(1000)
]
severe, cured = FastAPI(), FastAPI()


@severe.get("/")
async def validated() -> list[Article]:
    return ROWS


@cured.get("/")
async def rendered() -> list[Article]:
    return JSONResponse(ROWS)
