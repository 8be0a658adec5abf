"""Reads 20 rows by primary key from a SQLite database. Right: status 200 and 84 bytes of `FILLER`.

The handler counts the rows and answers status 500 if there are not 20.
"""

from velodrome.guest.recipe import Body, Query, Recipe

recipe = Recipe("query", "reads 20 rows from a database", (Query(rows=20), Body(84)))
