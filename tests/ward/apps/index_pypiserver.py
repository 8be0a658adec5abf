"""pypiserver, a Bottle app from the package index, with forty packages: as it is, and made ill in five ways."""

import logging
import os
import sqlite3
import tempfile
import time
from threading import local

import pypiserver
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

PACKAGES = tempfile.mkdtemp()
for number in range(40):
    with open(os.path.join(PACKAGES, f"shop{number}-1.0.tar.gz"), "wb") as file:
        file.write(b"x")
inner = pypiserver.app(roots=[PACKAGES])
FILE = os.path.join(tempfile.mkdtemp(), "seen.sqlite")
with sqlite3.connect(FILE) as made:
    made.execute("create table seen (at real)")
of_thread = local()
kept = []


class Nowhere(SpanExporter):
    def export(self, spans):
        for span in spans:
            span.to_json()
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(Nowhere()))
tracer = provider.get_tracer("shop")


class Slowly(logging.Handler):
    def emit(self, record):
        time.sleep(0.01)


log = logging.getLogger("shop")
log.setLevel(logging.INFO)
log.propagate = False
log.addHandler(Slowly())


def before(work):
    def app(environ, start_response):
        work()
        return inner(environ, start_response)

    return app


def notes():
    if not hasattr(of_thread, "connection"):
        of_thread.connection = sqlite3.connect(FILE, timeout=0)
    with of_thread.connection:
        of_thread.connection.execute("insert into seen values (?)", (time.time(),))
        time.sleep(0.001)


def traced():
    for step in range(40):
        with tracer.start_as_current_span("step", attributes={"number": step}):
            pass


as_it_is = before(lambda: None)
locked, traces = before(notes), before(traced)
logs = before(lambda: log.info("a request"))
grows = before(lambda: kept.append(bytearray(b"x" * 20_000)))
leaks = before(lambda: kept.append(os.open(os.devnull, os.O_RDONLY)))
