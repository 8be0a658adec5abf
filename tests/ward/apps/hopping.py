"""`thread-hops`: dependencies that compute next to nothing, in threads; cured by `async def`."""

from typing import Annotated

from fastapi import Depends, FastAPI, Request

severe, cured = FastAPI(), FastAPI()


def agent(request: Request):
    return request.headers.get("user-agent", "")


def language(request: Request):
    return request.headers.get("accept-language", "en")


def page(request: Request):
    return int(request.query_params.get("page", "1"))


def tenant(request: Request):
    return request.headers.get("host", "").partition(".")[0]


@severe.get("/")
async def shop(
    agent: Annotated[str, Depends(agent)],
    language: Annotated[str, Depends(language)],
    page: Annotated[int, Depends(page)],
    tenant: Annotated[str, Depends(tenant)],
):
    return {"agent": agent, "language": language, "page": page, "tenant": tenant}


async def awaited_agent(request: Request):
    return agent(request)


async def awaited_language(request: Request):
    return language(request)


async def awaited_page(request: Request):
    return page(request)


async def awaited_tenant(request: Request):
    return tenant(request)


@cured.get("/")
async def shop_on_the_loop(
    agent: Annotated[str, Depends(awaited_agent)],
    language: Annotated[str, Depends(awaited_language)],
    page: Annotated[int, Depends(awaited_page)],
    tenant: Annotated[str, Depends(awaited_tenant)],
):
    return {"agent": agent, "language": language, "page": page, "tenant": tenant}
