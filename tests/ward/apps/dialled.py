"""`connection-per-query`: a connection to SQLite for each request, without a library that has pools; and cured.

A new connection reads the schema, of 150 tables, before its first statement.
"""

import os
import sqlite3
import tempfile

import aiosqlite
from answering import answering

PATH = os.path.join(tempfile.mkdtemp(), "shop.sqlite")
ROW = "SELECT name FROM items7 WHERE number = ?"


def fill():
    with sqlite3.connect(PATH) as connection:
        for number in range(150):
            connection.execute(
                f"CREATE TABLE items{number} (number INTEGER PRIMARY KEY, name TEXT, price INTEGER, shop TEXT)"
            )
            connection.execute(f"INSERT INTO items{number} VALUES (1, 'a', 2, 'b')")
    connection.close()


fill()


def connect():
    connection = sqlite3.connect(PATH)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


async def opens():
    connection = connect()
    try:
        connection.execute(ROW, (1,)).fetchone()
    finally:
        connection.close()


async def opens_in_a_thread():
    async with aiosqlite.connect(PATH) as connection, connection.execute(ROW, (1,)) as found:
        await found.fetchone()


kept = connect()
idle = []


async def keeps():
    kept.execute(ROW, (1,)).fetchone()


async def keeps_in_threads():
    connection = idle.pop() if idle else await aiosqlite.connect(PATH)
    async with connection.execute(ROW, (1,)) as found:
        await found.fetchone()
    idle.append(connection)


severe, cured = answering(opens), answering(keeps)
in_threads, in_threads_cured = answering(opens_in_a_thread), answering(keeps_in_threads)
