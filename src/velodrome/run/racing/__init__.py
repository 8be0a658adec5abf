"""The course of a race: prepared, each heat booted and run in order, each result stored before the next begins.

`race` is the whole, `course` the order of heats, `trial` one heat, `boot` all that one server needs to be up.
"""
