"""Verdicts with profiles, made up."""

import dataclasses

from tests.report import made_up_verdict

from velodrome.model.verdict import ProfileView, Verdict


def view(label: str, collapsed: str, idle: float, **facts: object) -> ProfileView:
    made = ProfileView(
        question="hello",
        contestant=label,
        load="open-100",
        rate=100.0,
        profiler="py-spy 0.4.3",
        samples=100,
        idle_share=idle,
        opaque_share=0.0,
        cpus=0.25,
        achieved_rps=100.0,
        depth_mean=5.25,
        depth_max=6,
        by_part={"HTTP": 0.75, "handler": 0.25},
        by_package={"uvicorn": 0.75, "handler": 0.25},
        collapsed=collapsed,
        speedscope="",
        notes=(),
        failed="",
    )
    return dataclasses.replace(made, **facts)  # type: ignore[arg-type]


def verdict(*views: ProfileView) -> Verdict:
    return dataclasses.replace(made_up_verdict.verdict(), profiles=views)
