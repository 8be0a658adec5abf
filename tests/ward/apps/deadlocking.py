"""`dependency-deadlock`: sessions of a `yield` dependency, of a pool smaller than AnyIO's threads; and cured."""

import os
import tempfile
import time
from typing import Annotated

from fastapi import Depends, FastAPI
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session
from sqlalchemy.pool import QueuePool

WAITS_S = 0.02
file = os.path.join(tempfile.mkdtemp(), "shop.sqlite")


def shop(size):
    engine = create_engine(
        f"sqlite:///{file}",
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=0,
        connect_args={"check_same_thread": False},
    )
    app = FastAPI()

    def session():
        with Session(engine) as database:
            database.execute(text("select 1"))
            yield database

    @app.get("/")
    def count(database: Annotated[Session, Depends(session)]):
        time.sleep(WAITS_S)
        return database.execute(text("select 2")).scalar()

    return app


severe, cured = shop(10), shop(100)
