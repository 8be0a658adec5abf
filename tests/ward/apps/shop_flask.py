"""A small shop on Flask: a page of a template, and rows of a database that is asked in the request's own thread."""

import os
import sqlite3
import tempfile
from threading import local

from flask import Flask, jsonify

app = Flask(__name__)
FILE = os.path.join(tempfile.mkdtemp(), "shop.sqlite")
of_thread = local()
PAGE = app.jinja_env.from_string(
    "<ul>{% for row in rows %}<li>{{ row.name }}: {{ row.price }}</li>{% endfor %}</ul>"
)
ROWS = [{"name": f"article {number}", "price": number / 2} for number in range(20)]
with sqlite3.connect(FILE) as connection:
    connection.execute("create table articles (number integer primary key, name text)")
    connection.executemany("insert into articles values (?, ?)", [(n, f"article {n}") for n in range(100)])


@app.get("/")
def page():
    return PAGE.render(rows=ROWS)


@app.get("/articles")
def articles():
    if not hasattr(of_thread, "connection"):
        of_thread.connection = sqlite3.connect(FILE)
    return jsonify(of_thread.connection.execute("select * from articles limit 20").fetchall())
