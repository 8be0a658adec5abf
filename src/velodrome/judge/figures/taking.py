"""All metrics by name: each with how it is taken."""

from collections.abc import Mapping

from velodrome.judge.figures import cost, latency, outcomes, profiles, sustained, throughput
from velodrome.judge.figures.cell import Taking

TAKING: Mapping[str, Taking] = {
    **throughput.FIGURES,
    **sustained.FIGURES,
    **latency.FIGURES,
    **cost.FIGURES,
    **outcomes.FIGURES,
    **profiles.FIGURES,
}
