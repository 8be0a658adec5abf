"""Examinations made up in the shape of real ones: an app with two causes, a healthy one, and one from hostile hands."""

from tests.ward.made import rising

from velodrome.diagnoses.fault import plateau
from velodrome.judge.diagnosis import levels
from velodrome.model.diagnosis import (
    AS_IT_IS,
    Arms,
    Collection,
    Cure,
    Diagnosis,
    Disturbance,
    Evidence,
    Examination,
    Figures,
    Ruling,
    Sampled,
    SloHolds,
    SloRate,
    Stall,
    Timeline,
    Treatment,
    Untried,
    surest_first,
)
from velodrome.model.quantity import Interval
from velodrome.model.symptoms import Symptoms

FOLDER = "/srv/shop"
LINE = f"{FOLDER}/pricing.py:88 in price"
SLOPE = plateau(Symptoms(rising(1), None, None, 1, 1))
ARMS = Arms(
    "closed-8",
    AS_IT_IS,
    Treatment(f"{FOLDER}/pricing.py:91 in a thread", {"in-thread": []}),
    tuple(
        (
            Figures(45.0 + n, 177.0 - n, 176.0, 190.0 + n, 900.0, 0.0),
            Figures(452.0 - 4 * n, 17.0, 16.4, 31.0 + n, 950.0, 0.0),
        )
        for n in range(4)
    ),
)
BLOCKING = Diagnosis(
    "blocking-call",
    Ruling.CAUSE,
    f"{LINE} holds up the loop for 96% of the time under load; throughput 9.6× [9.2, 10.1] better in the cured arm",
    {
        "rps": Interval(380, 404, 431),
        "mean_ms": Interval(150, 158, 163),
        "p50_ms": Interval(149, 157, 162),
        "p99_ms": Interval(120, 158, 171),
        "cpu_us": Interval(-90, -50, 10),
        "slo_rps": Interval(340, 372, 401),
    },
    (
        Evidence(
            "stack",
            f"{LINE}: rates = requests.get(url)",
            {
                "frames": [f"price ({FOLDER}/pricing.py:88)", f"cart ({FOLDER}/views.py:12)"],
                "seconds": 2.9,
                "blocked_s": 2.8,
                "ran_s": 0.04,
                "times": 140,
                "of_s": 3.0,
            },
        ),
        Evidence(
            "arms",
            "both arms under closed-8, 4 blocks: throughput 9.6× better",
            {**ARMS.document(), "levels": levels(ARMS)},
        ),
    ),
    Cure(
        "do not wait in the event loop",
        f"{FOLDER}/views.py:12",
        "return price(cart)",
        "return await asyncio.to_thread(price, cart)",
    ),
    "cure",
    9.6,
)
LOGGING = Diagnosis(
    "log-cost",
    Ruling.CAUSE,
    "40% of the stacks of busy threads are in logging; throughput 1.4× [1.3, 1.5] better in the cured arm",
    {"rps": Interval(120, 170, 210)},
    (Evidence("stack", "40% of the stacks of busy threads are in logging", {"share": 0.4}),),
    Cure("write fewer records for each request", "the app's logging configuration", "", "a QueueHandler"),
    "cure",
    1.4,
)
NOISY = Diagnosis(
    "gil-convoy", Ruling.CANNOT_TELL, "after 8 blocks throughput is 1.1× [0.8, 1.4] better in the cured arm"
)
INNOCENT = Diagnosis("gc-pause", Ruling.NOT_A_CAUSE, "the whole heap was collected for 0.1% of the time")
NOT_NAGLE = Diagnosis(
    "nodelay",
    Ruling.NOT_A_CAUSE,
    "p50 0.61 ms on a reused connection, 0.6 ms on a fresh one",
    evidence=(
        Evidence("latency", "p50 0.61 ms on a reused connection", {"first_ms": 0.6, "later_ms": 0.61}),
    ),
)
SCREENS = (
    *SLOPE,
    Evidence("counter", "event loop late for 97.0% of the time, blocked for 94.0%", {"late_share": 0.97}),
)
TIMELINE = Timeline(
    "closed-8",
    3.0,
    ((f"price ({FOLDER}/pricing.py:88): rates = requests.get(url)", "get (/usr/lib/api.py:60)"),),
    (
        Stall(0.2, 0.021, 0.001, 0.02, 0),
        Stall(0.9, 0.1, 0.09, 0.001, None),
        Stall(2.5, 0.4, 0.01, 0.38, 0),
    ),
    (Collection(0.91, 0.09, 2), Collection(1.7, 0.002, 0)),
    (
        Sampled(0.5, 0.2, 0.0, 0, 0),
        Sampled(1.0, 0.9, 0.0, 0, 3),
        Sampled(1.5, 0.2, 0.3, 0, 1),
        Sampled(2.0, 0.2, 0.0, 0, 0),
        Sampled(2.5, 0.2, None, None, None),
        Sampled(3.0, 0.1, 0.0, 12, 5),
    ),
)
SLO = SloHolds(
    ("p99 < 200ms",),
    SloRate(True, Interval(38, 41, 44), "converged"),
    SloRate(True, Interval(380, 413, 440), "converged"),
)


def ill() -> Examination:
    """Return one with two causes, and everything else that there can be."""
    return Examination(
        "shop:app: GET /cart",
        "uvicorn",
        surest_first((INNOCENT, LOGGING, NOISY, NOT_NAGLE, BLOCKING)),
        (
            Untried(
                "thread-tokens", "the budget was spent; likely, since 40 threads at once; about 16 s more"
            ),
        ),
        SCREENS,
        0.06,
        121.0,
        FOLDER,
        SLO,
        TIMELINE,
        disturbed=(
            Disturbance(
                "other-load", 4, 46, "Other programs used 62 % of the server's CPU, 'cc1' most of all."
            ),
        ),
    )


def well() -> Examination:
    """Return a healthy one, without heartbeat and without SLO."""
    return Examination(
        "hello", "uvicorn-h11", surest_first((INNOCENT, NOT_NAGLE)), (), SCREENS[:1], None, 29.0
    )


HOSTILE = "</script><script>alert(1)</script>\x1b[2J\x00"


def hostile() -> Examination:
    """Return one in which every text that an app chooses tries to be something else."""
    cause = Diagnosis(
        "blocking-call",
        Ruling.CAUSE,
        HOSTILE,
        evidence=(Evidence("stack", HOSTILE, {"frames": [HOSTILE]}),),
        cure=Cure(HOSTILE, HOSTILE, HOSTILE, HOSTILE),
        proof="dose",
        gain=2.0,
    )
    line = Timeline("closed-8", 1.0, ((HOSTILE, HOSTILE),), (Stall(0.1, 0.1, 0.0, 0.1, 0),), (), ())
    return Examination(
        HOSTILE, HOSTILE, (cause,), (), (Evidence("failed", HOSTILE),), None, 1.0, "", None, line
    )
