"""Apps for servers that call through WSGI: what is wrong with them is how they are served."""

import time


def saying(work):
    def app(environ, start_response):
        work(environ)
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "5")])
        return [b"hello"]

    return app


nothing = saying(lambda environ: None)
waiting = saying(lambda environ: time.sleep(0.005))
slow = saying(lambda environ: time.sleep(0.1))
reading = saying(lambda environ: environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
