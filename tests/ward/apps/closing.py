"""`background-holds` under WSGI: work when the answer is closed, as `request_finished` of Django has it; and cured."""

import threading
import time


class Answer(list):
    def __init__(self, close):
        super().__init__([b"hello"])
        self.close = close


def writes_mail():
    time.sleep(0.1)


def answering(close):
    def app(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "5")])
        return Answer(close)

    return app


severe = answering(writes_mail)
cured = answering(lambda: threading.Thread(target=writes_mail).start())
