from contextlib import asynccontextmanager

from fastapi import FastAPI

stock = {}


@asynccontextmanager
async def lifespan(app):
    stock["apples"] = 3
    yield
    stock.clear()


def create_app():
    app = FastAPI(lifespan=lifespan)

    @app.get("/stock")
    async def in_stock():
        return stock

    return app


app = create_app()
