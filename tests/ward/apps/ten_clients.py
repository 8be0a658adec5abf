"""`connector-limit`: a client of Tornado makes ten calls at once; cured by one that makes as many as it needs."""

import os

from tornado.httpclient import AsyncHTTPClient
from tornado.web import Application, RequestHandler

URL = os.environ["PAYMENTS_URL"]


class Usual(RequestHandler):
    def client(self):
        return AsyncHTTPClient()

    async def get(self):
        response = await self.client().fetch(URL)
        self.write({"bytes": len(response.body)})


made = []


class Wide(Usual):
    def client(self):
        if not made:
            made.append(AsyncHTTPClient(force_instance=True, max_clients=400))
        return made[0]


severe, cured = (Application([("/", handler)]) for handler in (Usual, Wide))
