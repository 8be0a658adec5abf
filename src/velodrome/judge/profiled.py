"""A profile as a verdict shows it."""

from velodrome.model.load import Open
from velodrome.model.profile import Profile
from velodrome.model.verdict import ProfileView


def view(profile: Profile) -> ProfileView:
    """Return what a profile tells, without the trial it was taken of."""
    trial, pace = profile.trial, profile.trial.load.pace
    cpus = None
    if profile.server_cpu_s is not None and profile.load_s:
        cpus = profile.server_cpu_s / profile.load_s
    return ProfileView(
        question=trial.question,
        contestant=trial.label,
        load=trial.load.label,
        rate=pace.rate if isinstance(pace, Open) else None,
        profiler=profile.profiler,
        samples=profile.samples,
        idle_share=profile.idle_share,
        opaque_share=profile.opaque_share,
        cpus=cpus,
        achieved_rps=profile.achieved_rps,
        depth_mean=profile.depth_mean,
        depth_max=profile.depth_max,
        by_part=profile.share_by_part,
        by_package=profile.share_by_package,
        collapsed=profile.collapsed,
        speedscope=profile.speedscope,
        notes=profile.notes,
        failed=profile.failed,
    )
