"""A small shop on FastAPI as tutorials have it: models of what comes and goes, a database in threads, a log."""

import logging
import os
import tempfile
from contextvars import ContextVar

from fastapi import FastAPI
from pydantic import BaseModel
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session
from sqlalchemy.pool import QueuePool

engine = create_engine(
    f"sqlite:///{os.path.join(tempfile.mkdtemp(), 'shop.sqlite')}",
    poolclass=QueuePool,
    pool_size=40,
    connect_args={"check_same_thread": False},
)
with engine.begin() as connection:
    connection.execute(text("create table articles (number integer primary key, name text, price real)"))
    for number in range(100):
        connection.execute(
            text("insert into articles values (:number, :name, 1.5)"),
            {"number": number, "name": f"article {number}"},
        )
request_id = ContextVar("request_id", default="")
log = logging.getLogger("shop")
log.setLevel(logging.WARNING)
app = FastAPI()


class Article(BaseModel):
    number: int
    name: str
    price: float


@app.get("/")
async def home() -> dict[str, str]:
    request_id.set("home")
    log.info("home")
    return {"shop": "open"}


@app.get("/articles/{number}")
def article(number: int) -> Article:
    # In a dependency with `yield` the session would be closed in another thread: of 128 requests at once, those that
    # hold a connection then wait for a thread, and the threads for a connection.
    with Session(engine) as database:
        row = database.execute(text("select * from articles where number = :n"), {"n": number}).one()
    return Article(number=row[0], name=row[1], price=row[2])


@app.post("/orders")
async def order(ordered: Article) -> dict[str, float]:
    return {"total": ordered.price}
