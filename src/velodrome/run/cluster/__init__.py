"""Many machines: one load from all of them, or blocks of a race, each whole on one of them.

Of a load there are agents, their clocks, the way to them, and the merge of what they measured; of a race the handing
out of blocks (`handing`), and their running on each host (`blocks`).

Agents are workers of Dask distributed, its scheduler is the coordinator: it knows who is there. The talk of a load goes
from the command to each agent directly. Only `velodrome agent`, `velodrome cluster` and commands with `--agents` import
what needs Dask (`agent`, `coordinator`, `conducting`, `handing`, `talking`).
"""
