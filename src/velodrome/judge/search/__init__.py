"""Searches: the highest rate that holds, the connections from which on throughput stops rising.

Pure: each is given a function that measures and returns what it found, with an interval, or why it cannot. What is
measured, and how, is the caller's.

`rate.py` searches rates, by `threshold.py`; `connections.py` searches connections; `backlog.py` tells early that a rate
is too high.
"""
