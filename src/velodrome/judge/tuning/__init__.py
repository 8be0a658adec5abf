"""Searches among settings: pure, given a function that measures one load of one candidate.

`forecasting.py` says by arithmetic what a candidate can do at most, `knowing.py` keeps what is known of one,
`racing.py` decides whom to measure next and when it is enough, `sensitivity.py` what would change the answer.
"""
