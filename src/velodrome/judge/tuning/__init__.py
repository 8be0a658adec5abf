"""Searches among settings: pure, given a function that measures one load of one candidate.

`forecasting.py` says by arithmetic what a candidate can do at most and what would change the answer, `racing.py` keeps
what is known of each candidate and decides which to measure next and when it is enough, `hosts.py` has several hosts
make the loads of one race.
"""
