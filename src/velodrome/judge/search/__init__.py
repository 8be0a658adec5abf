"""Searches: the highest rate that holds, the connections from which on throughput stops rising.

Pure: each is given a function that measures and returns what it found, with an interval, or why it cannot. What is
measured, and how, is the caller's.

`rate.py` searches rates, `connections.py` connections; `holding.py` judges one trial.
"""
