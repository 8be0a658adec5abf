"""Made-up claims in every judgement, as a judge would write them."""

from dataclasses import replace

from tests.report.made_up_verdict import verdict

from velodrome.model.claim import Check, Checked, Claim, Experiment, Figure, Finding, Judged, Judgement
from velodrome.model.quantity import Interval
from velodrome.model.verdict import Verdict

HOLDS, FAILS, CANNOT = Judgement.HOLDS, Judgement.FAILS, Judgement.CANNOT_TELL
GEVENT, SYNC = "third-party/gunicorn-gevent[workers=3]", "third-party/gunicorn-sync[workers=3]"


def ratio(metric: str, about: str, published: float | None, at_least: float | None) -> Check:
    return Check(Figure(metric, GEVENT), Figure(metric, SYNC), at_least, None, published, about=about)


THROUGHPUT = ratio("throughput_rps", "throughput, gevent over sync", 2.63, 1.5)
LATENCY = ratio(
    "p50_ms", "median latency, sync over gevent, as a user waits for it from when it was due", 2.61, 2
)
RATE = Check(Figure("throughput_rps", SYNC), None, 30, None, 37.86, about="sync workers, requests a second")
LEAKS = Check(Figure("mismatches", experiment="canary"), None, 1, None)
HANGS = Check(Figure("how", experiment="canary"), None, None, None, equals="DeadlineExceeded")
TOP = Check(Figure("sustained_rps", GEVENT), None, None, 1000, 2400.0)

CLAIMS = (
    Judged(
        Claim(
            "G1",
            "gevent gives nearly three times the throughput of sync workers, and 2.6 times lower latency",
            (),
        ),
        FAILS,
        (
            Checked(THROUGHPUT, HOLDS, Interval(2.41, 2.62, 2.85)),
            Checked(
                LATENCY,
                CANNOT,
                Interval(1.7, 2.1, 2.6),
                reason="the interval reaches across 2×; 4 more blocks",
            ),
            Checked(
                RATE, FAILS, Interval(14.7, 14.9, 15.1), reason="all of 14.9/s [14.7, 15.1] lies below 30/s"
            ),
        ),
        "Sync workers, requests a second: all of 14.9/s [14.7, 15.1] lies below 30/s.",
        (
            "3 workers that each wait 200 ms cannot exceed 3 ÷ 0.2 s = 15/s; the published 37.86/s takes 7.6 of them.",
        ),
    ),
    Judged(
        Claim(
            "G2", "a marker in a thread-local leaks between requests", (), remark="Safe under gevent today."
        ),
        CANNOT,
        (Checked(LEAKS, CANNOT, None, reason="the experiment canary was not run"),),
        "The experiment canary was not run.",
    ),
    Judged(
        Claim("R4", "it hangs", ()), HOLDS, (Checked(HANGS, HOLDS, None, "Deadline<b>Exceeded</b>"),), "Seen."
    ),
    Judged(
        Claim("T1", "it holds to the end", ()),
        CANNOT,
        (Checked(TOP, CANNOT, Interval(3000, 3000, 3000), limit="at least"),),
        "What was tried ends there.",
    ),
)
FINDING = Finding(
    Experiment("canary", "canary"),
    "2026-11-20T12:00:00+00:00",
    {"mismatches": 0.0},
    "No marker was lost <b>.",
)


def with_claims() -> Verdict:
    return replace(verdict(), claims=CLAIMS, findings=(FINDING,), form="quick")
