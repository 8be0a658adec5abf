"""Nothing survives velodrome: processes it starts end when it does, however it ends.

Servers and whatever else may fork stand under a *warden*; processes of velodrome's own hang on a *lifeline*, their
standard input (`python.Child`). `docs/decisions/0002-a-warden-for-servers-a-lifeline-for-our-own.md` says why both.
"""
