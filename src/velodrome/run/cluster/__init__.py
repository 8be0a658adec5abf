"""One load from many machines: agents, their clocks, the way to them, and the merge of what they measured.

Agents are workers of Dask distributed, its scheduler is the coordinator: it knows who is there. The talk of a load goes
from the command to each agent directly. Only `velodrome agent`, `velodrome cluster` and loads with `--agents` import
what needs Dask (`agent`, `coordinator`, `conducting`, `talking`).
"""
