"""A race: what it needs is prepared, its server sessions run in order, each result is stored before the next begins.

`race` is the whole and its order, `opening` what comes before anything is measured, `session` one server from its start
to its stop, `store` the results file.
"""
