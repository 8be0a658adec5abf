from tornado.web import Application, RequestHandler


class Cart(RequestHandler):
    async def get(self):
        self.write({"id": self.get_query_argument("id")})


def make_app():
    return Application([("/cart", Cart)])


app = make_app()
