"""The order of an examination: what is likeliest first, once more behind each cure, and never beyond the budget."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import jsonschema
import pytest
from tests.ward.made import PROBE, QUIET, SEEN, arms, figures, rising

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown
from velodrome.guest import catalog
from velodrome.judge.diagnosis import Judged
from velodrome.model.condition import read
from velodrome.model.diagnosis import (
    AS_IT_IS,
    BEATING,
    Cure,
    Examination,
    Figures,
    Met,
    Probe,
    Ruling,
    SloRate,
    Treatment,
    surest_first,
)
from velodrome.model.errors import NoServerError, TooSlowError, UnknownNameError, UpstreamError
from velodrome.model.load import Limits
from velodrome.model.quantity import Interval
from velodrome.model.search import Ending, RateCapacity, RateFound
from velodrome.model.symptoms import Called, InUse, Setting, Symptoms, Waits
from velodrome.model.trial import Contestant
from velodrome.report import diagnosis_page, schema
from velodrome.report.diagnoses import diagnosis_lines
from velodrome.run.instruments import arms as instruments
from velodrome.run.instruments import screens, situations
from velodrome.run.instruments.arms import Arm, NotMeasuredError, Probed
from velodrome.run.instruments.standing import Standing
from velodrome.run.lab import Lab
from velodrome.usecases import diagnose as doctor
from velodrome.usecases.bench import trial_of
from velodrome.usecases.capacity import Search
from velodrome.usecases.diagnose import Case, Compared, Slo, choose_faults, slo_rate
from velodrome.usecases.events import Events

pytestmark = pytest.mark.unit
CURE = Cure("change it")
MEASURED = arms([100] * 4, [200] * 4)


def experiment(name: str, **more: object) -> Experiment:
    return replace(Experiment(Treatment(name, {name: 1}), 8, CURE), **more)  # type: ignore[arg-type]


def suspected(name: str, likelihood: float = 0.9, *experiments: Experiment, hidden_by: str = "") -> Fault:
    """Return a fault that is suspected, unless it is cured, or while another one hides it."""

    def screen(seen: Symptoms) -> Screened:
        if name in seen.failed or (hidden_by and hidden_by not in seen.failed):
            return Absent("nothing shows")
        return Suspect(likelihood, f"{name} shows", experiments or (experiment(name),))

    return Fault(name, name, ("somewhere#1",), name, name, screen)


class Scripted(Case):
    """Measures nothing: arms come to what was written down, and screens see which cures are there."""

    def __init__(
        self,
        faults: Sequence[Fault],
        rulings: dict[str, object],
        budget_s: float = 300.0,
        *,
        spends: bool = False,
    ) -> None:
        """`spends`: the first experiment takes all of the budget."""
        trial = trial_of("doctor", catalog.recipes()["hello"], Contestant("uvicorn"), Limits())
        lab = Lab(catalog.stacks(), Path("/nowhere"), cpus=(0, 1))
        super().__init__(
            trial, lab, {fault.name: fault for fault in faults}, time.monotonic() + budget_s, Events()
        )
        self.rulings, self.tried, self.screened_with = rulings, list[str](), list[str]()
        self.broken = frozenset[str]()
        self.spends = spends

    def _screen(self, *, first: bool = False) -> Symptoms:
        self.screened_with.append(self._base.about)
        self._slopes.append(SEEN.slope)
        return replace(SEEN, failed=tuple(self._base.give))

    def _compare(self, experiment: Experiment, seen: Symptoms) -> Compared:
        name = experiment.probe.about if experiment.probe else experiment.treatment.about
        self.tried.append(name)
        if self.spends:
            self._deadline = time.monotonic()
        found = self.rulings.get(name, Ruling.NOT_A_CAUSE)
        if not isinstance(found, Ruling):
            assert isinstance(found, Absent | str)
            return found
        if found is Ruling.CAUSE and experiment.proof == "cure":
            self._base = self._base.plus(experiment.treatment)
        return MEASURED, Judged(found, "so it is", gain=2.0, breaks=name in self.broken)

    def causes(self) -> list[str]:
        return [diagnosis.id for diagnosis in self.diagnoses if diagnosis.ruling is Ruling.CAUSE]


def test_the_likeliest_is_tried_first_and_each_once() -> None:
    case = Scripted([suspected("rare", 0.2), suspected("likely", 0.9), suspected("even", 0.5)], {})
    case.examine()
    assert case.tried == ["likely", "even", "rare"]
    assert {diagnosis.ruling for diagnosis in case.diagnoses} == {Ruling.NOT_A_CAUSE}
    assert case.screened_with == ["as it is"]


@pytest.mark.parametrize(("cpus", "kinds"), [(0.2, {"lines", "waits"}), (1.0, {"lines"})])
def test_the_screens_show_the_lines_of_busy_threads_and_where_tasks_wait_if_the_cpu_is_not_the_bound(
    cpus: float, kinds: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = Called("/srv/shop/cart.py:7", "cart", "copy.deepcopy(items)", 0.6)
    wait = Waits("/srv/shop/cart.py:9", "cart", "async with lock:", 9.0, 63)
    watched = replace(
        QUIET, lines=(busy, replace(busy, share=0.05)), waits=(wait, replace(wait, inner=False, seconds=20.0))
    )
    case = Scripted([], {})
    seen = replace(SEEN, slope=rising(1, cpus=cpus), watched=watched)
    monkeypatch.setattr(case, "_screen", lambda **_: seen)
    case.examine()
    shown = {evidence.kind: evidence for evidence in case.screens if evidence.kind in ("lines", "waits")}
    assert set(shown) == kinds
    assert shown["lines"].data["lines"] == [vars(busy)]
    if "waits" in kinds:
        assert shown["waits"].data["waits"] == [{"place": wait.place, "share": 1.0, "most": 63}]


@pytest.mark.parametrize(("seconds", "shown"), [(1.0, True), (0.2, False)])
def test_where_an_app_computes_under_load_the_waits_of_a_request_that_is_alone_are_shown(
    seconds: float, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = Waits("/srv/shop/jobs.py:51", "poll", "await asyncio.sleep(0.1)", seconds, 1)
    case = Scripted([], {})
    alone = replace(QUIET, waits=(wait,), looked_s=1.5)
    seen = replace(SEEN, slope=rising(1, cpus=1.0), watched_alone=alone)
    monkeypatch.setattr(case, "_screen", lambda **_: seen)
    case.examine()
    waits = [evidence for evidence in case.screens if evidence.kind == "waits"]
    assert [evidence.data["waits"] for evidence in waits] == shown * [
        [{"place": wait.place, "share": 1.0, "most": 1}]
    ]


def test_behind_a_cure_everything_is_looked_at_again() -> None:
    case = Scripted(
        [suspected("first"), suspected("second", hidden_by="first")],
        {"first": Ruling.CAUSE, "second": Ruling.CAUSE},
    )
    case.examine()
    assert case.causes() == ["first", "second"]
    assert case.screened_with == ["as it is", "first", "first, second"]


def test_a_cause_stays_one_when_its_cure_has_taken_its_symptoms_away() -> None:
    case = Scripted([suspected("first")], {"first": Ruling.CAUSE})
    case.examine()
    assert [(diagnosis.id, diagnosis.ruling) for diagnosis in case.diagnoses] == [("first", Ruling.CAUSE)]


@pytest.mark.parametrize(
    ("loaded", "counted", "tried"),
    [
        (Ruling.CANNOT_TELL, Ruling.CAUSE, ["moved", "counted"]),
        (Ruling.NOT_A_CAUSE, Ruling.CAUSE, ["moved"]),
        (Ruling.CANNOT_TELL, Ruling.CANNOT_TELL, ["moved", "counted"]),
    ],
)
def test_where_a_load_does_not_decide_the_same_treatment_is_judged_by_what_can_be_counted(
    loaded: Ruling, counted: Ruling, tried: list[str]
) -> None:
    by_load = experiment("moved")
    by_count = replace(by_load, probe=replace(PROBE, about="counted"))
    case = Scripted(
        [suspected("moved", 0.5, by_load, by_count, experiment("longer"))],
        {"moved": loaded, "counted": counted},
    )
    case.examine()
    assert case.tried == tried
    (diagnosis,) = case.diagnoses
    assert diagnosis.ruling is (counted if len(tried) > 1 else loaded)


def test_a_bound_that_was_raised_is_not_raised_again() -> None:
    """The larger bound is the experiment's own; what is bound by it then is not the app's fault."""

    def screen(seen: Symptoms) -> Screened:
        more = Treatment(f"{60 + 600 * len(seen.failed)} threads", {"threads": 60 + 600 * len(seen.failed)})
        return Suspect(0.9, "it stops", (Experiment(more, 8, CURE),))

    pool = Fault("pool", "pool", ("somewhere#1",), "pool", "pool", screen)
    case = Scripted([pool], {"60 threads": Ruling.CAUSE, "660 threads": Ruling.CAUSE})
    case.examine()
    assert case.tried == ["60 threads"]


def test_another_call_site_of_the_same_fault_is_tried_behind_the_first() -> None:
    def screen(seen: Symptoms) -> Screened:
        site = Treatment(f"site {len(seen.failed)}", {"moved": [{"line": len(seen.failed)}]})
        return Suspect(0.9, "it blocks", (Experiment(site, 8, CURE),))

    call = Fault("call", "call", ("somewhere#1",), "call", "call", screen)
    case = Scripted([call], {"site 0": Ruling.CAUSE, "site 1": Ruling.CAUSE})
    case.examine()
    assert case.tried == ["site 0", "site 1"]
    assert case.causes() == ["call", "call"]


def test_what_a_first_fault_hid_is_tried_again_without_it() -> None:
    case = Scripted([suspected("loud", 0.9), suspected("quiet", 0.5)], {"loud": Ruling.CAUSE})
    case.examine()
    assert case.tried == ["loud", "quiet"]


def test_an_experiment_that_cannot_be_made_gives_way_to_the_next() -> None:
    both = experiment("moved"), experiment("longer", proof="dose")
    case = Scripted([suspected("call", 0.9, *both)], {"moved": "it is not served", "longer": Ruling.CAUSE})
    case.examine()
    (found,) = case.diagnoses
    assert case.tried == ["moved", "longer"]
    assert (found.ruling, found.proof) == (Ruling.CAUSE, "dose")


@pytest.mark.parametrize(
    ("refutes", "tried", "ruling"),
    [(True, ["cancelled"], Ruling.NOT_A_CAUSE), (False, ["cancelled", "left"], Ruling.CAUSE)],
)
def test_a_treatment_that_changes_nothing_refutes_a_fault_unless_it_can_miss_it(
    refutes: bool, tried: list[str], ruling: Ruling
) -> None:
    both = experiment("cancelled", refutes=refutes), experiment("left", proof="dose")
    case = Scripted([suspected("call", 0.9, *both)], {"cancelled": Ruling.NOT_A_CAUSE, "left": Ruling.CAUSE})
    case.examine()
    (found,) = case.diagnoses
    assert (case.tried, found.ruling) == (tried, ruling)


def test_a_treatment_that_breaks_the_app_gives_way_to_the_next() -> None:
    both = experiment("moved"), experiment("longer", proof="dose")
    case = Scripted([suspected("call", 0.9, *both)], {"moved": Ruling.CANNOT_TELL, "longer": Ruling.CAUSE})
    case.broken = frozenset({"moved"})
    case.examine()
    assert (case.tried, case.causes()) == (["moved", "longer"], ["call"])


def test_a_dose_cures_nothing_so_nothing_is_looked_at_again() -> None:
    case = Scripted([suspected("call", 0.9, experiment("longer", proof="dose"))], {"longer": Ruling.CAUSE})
    case.examine()
    assert case.screened_with == ["as it is"]


def test_where_no_experiment_can_be_made_it_cannot_be_told() -> None:
    case = Scripted([suspected("call")], {"call": "it is not served"})
    case.examine()
    (found,) = case.diagnoses
    assert (found.ruling, found.reason, found.proof) == (Ruling.CANNOT_TELL, "it is not served", "")


def test_what_the_app_never_uses_is_no_cause() -> None:
    case = Scripted([suspected("call")], {"call": Absent("it was never used")})
    case.examine()
    assert [diagnosis.ruling for diagnosis in case.diagnoses] == [Ruling.NOT_A_CAUSE]


def test_beyond_the_budget_nothing_is_tried_and_that_is_reported() -> None:
    case = Scripted([suspected("likely")], {}, budget_s=1.0)
    case.examine()
    assert case.tried == []
    assert [untried.id for untried in case.untried] == ["likely"]
    assert case.diagnoses == []


def test_what_is_left_is_not_known_where_the_last_cure_was_not_looked_behind() -> None:
    behind = Scripted([suspected("first")], {"first": Ruling.CAUSE})
    behind.examine()
    assert behind.unexplained() is not None
    case = Scripted([suspected("first")], {"first": Ruling.CAUSE}, spends=True)
    case.examine()
    assert case.causes() == ["first"]
    assert case.screened_with == ["as it is"]
    assert case.unexplained() is None


def counting(name: str, proof: str = "cure", more: Treatment | None = None) -> Experiment:
    treatment = more or Treatment(name, knobs={"keepalive": 75})
    return replace(experiment(name), treatment=treatment, probe=PROBE, proof=proof)  # type: ignore[arg-type]


class Probing(Scripted):
    """Makes no situation: what its arms count was written down."""

    def __init__(self, fault: Fault) -> None:
        super().__init__([fault], {})

    def _compare(self, experiment: Experiment, seen: Symptoms) -> Compared:
        return Case._compare(self, experiment, seen)


@pytest.fixture
def written_down(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Treatment, Probe]]:
    """What the arms of a probe were made with."""
    made: list[tuple[Treatment, Probe]] = []
    hits = iter([(16, 0), (15, 1)] * 4)

    def probed(
        trial: object, lab: object, sides: Sequence[tuple[Treatment, Probed]], number: int
    ) -> tuple[Arm[Met], Arm[Met]]:
        made.extend((treatment, how.probe) for treatment, how in sides)
        before, after = next(hits)
        if sides[0][1] != sides[1][1]:
            before, after = after, before
        return Arm(Met(before, 16), frozenset()), Arm(Met(after, 16), frozenset())

    monkeypatch.setattr(instruments, "block", probed)
    return made


def test_a_probe_that_the_cure_takes_the_hits_from_is_a_cause_and_needs_no_second_look(
    written_down: list[tuple[Treatment, Probe]],
) -> None:
    case = Probing(suspected("race", 0.9, counting("longer")))
    case.examine()
    (found,) = case.diagnoses
    assert (found.ruling, found.proof) == (Ruling.CAUSE, "cure")
    assert found.effect["share"].low > 0
    assert [evidence.kind for evidence in found.evidence] == ["counts"]
    assert found.gain == pytest.approx(1 / (1 - 0.3)), (
        "by the loss that the fault lets expect, and not by how many hit"
    )
    assert len(found.evidence[0].data["blocks"]) == 2
    assert case.screened_with == ["as it is"]
    assert [treatment.about for treatment, _ in written_down] == ["as it is", "longer"] * 2
    assert case.unexplained() is not None
    assert case.untried == []


def test_behind_the_cure_of_a_probe_that_hides_other_faults_everything_is_looked_at_again(
    written_down: list[tuple[Treatment, Probe]],
) -> None:
    hiding = replace(counting("waits"), probe=replace(PROBE, hides=True))
    case = Probing(suspected("locked", 0.9, hiding))
    case.examine()
    assert case.screened_with == ["as it is", "waits"]
    assert len(written_down) == 4


def test_where_nothing_can_be_cured_the_arm_as_it_is_has_no_provocation(
    written_down: list[tuple[Treatment, Probe]],
) -> None:
    case = Probing(suspected("bleed", 0.9, counting("bleed", "dose", AS_IT_IS)))
    case.examine()
    (found,) = case.diagnoses
    assert (found.ruling, found.proof) == (Ruling.CAUSE, "dose")
    assert [probe.settings["count"] for _, probe in written_down] == [0, 8] * 2


def test_another_stack_is_no_base_for_what_follows(written_down: list[tuple[Treatment, Probe]]) -> None:
    other = Treatment("on gunicorn-gthread", stack="gunicorn-gthread")
    case = Probing(suspected("slow", 0.9, counting("slow", more=other)))
    case.examine()
    assert [diagnosis.id for diagnosis in case.diagnoses if diagnosis.ruling is Ruling.CAUSE] == ["slow"]
    assert not case._base


def test_only_and_skip_choose_and_refuse_what_is_not_known() -> None:
    assert set(choose_faults(("nodelay",), ())) == {"nodelay"}
    assert "nodelay" not in choose_faults((), ("nodelay",))
    with pytest.raises(UnknownNameError):
        choose_faults(("nodely",), ())


class Dying(Case):
    """Measures nothing: blocks come from a list, of which an exception is raised."""

    def __init__(self, blocks: Sequence[object]) -> None:
        trial = trial_of("doctor", catalog.recipes()["hello"], Contestant("uvicorn"), Limits())
        lab = Lab(catalog.stacks(), Path("/nowhere"), cpus=(0, 1))
        super().__init__(trial, lab, {"call": suspected("call")}, time.monotonic() + 300, Events())
        self.blocks = list(blocks)
        self.calls = 0

    def _screen(self, *, first: bool = False) -> Symptoms:
        return replace(SEEN, failed=tuple(self._base.give))


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Dying]:
    def made(*blocks: object) -> Dying:
        case = Dying(blocks)

        def block(*_: object) -> object:
            case.calls += 1
            found = case.blocks.pop(0)
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(instruments, "block", block)
        return case

    return made


ONE = (Arm(figures(100), frozenset()), Arm(figures(300), frozenset({"call"})))


def test_a_server_that_dies_in_a_block_is_followed_by_a_fresh_one(dying: Callable[..., Dying]) -> None:
    case = dying(ONE, NotMeasuredError(False, "it died"), ONE, ONE, ONE)
    case.examine()
    (found,) = case.diagnoses
    assert (found.ruling, case.calls) == (Ruling.CAUSE, 5)


def test_where_it_dies_again_what_was_measured_is_kept_with_which_arm_and_why(
    dying: Callable[..., Dying],
) -> None:
    case = dying(ONE, ONE, *[NotMeasuredError(False, "exit status 3")] * 2)
    case.examine()
    (found,) = case.diagnoses
    assert found.ruling is Ruling.CANNOT_TELL
    assert "as it is it cannot be measured" in found.reason
    assert "exit status 3" in found.reason
    (both,) = (evidence for evidence in found.evidence if evidence.kind == "arms")
    assert len(both.data["blocks"]) == 2
    assert not found.effect


def test_a_treatment_that_cannot_be_served_at_all_is_named(dying: Callable[..., Dying]) -> None:
    case = dying(*[NotMeasuredError(True, "no such module")] * 2)
    case.examine()
    (found,) = case.diagnoses
    assert found.ruling is Ruling.CANNOT_TELL
    assert "with call it cannot be measured" in found.reason


def test_a_situation_in_which_servers_die_is_made_once_more_and_what_was_counted_is_kept(
    dying: Callable[..., Dying],
) -> None:
    met = (Arm(Met(8, 16), frozenset()), Arm(Met(4, 16), frozenset()))
    case = dying(met, NotMeasuredError(True, "exit status 3"), met, *[NotMeasuredError(True, "it died")] * 2)
    case._faults = {"race": suspected("race", 0.9, counting("longer"))}
    case.examine()
    (found,) = case.diagnoses
    assert (found.ruling, case.calls) == (Ruling.CANNOT_TELL, 5)
    assert PROBE.about in found.reason
    assert "it died" in found.reason
    (both,) = (evidence for evidence in found.evidence if evidence.kind == "counts")
    assert len(both.data["blocks"]) == 2


class Rated(Scripted):
    """As scripted; rates of an SLO are written down too, by the cures that are there."""

    def __init__(self, rates: dict[str, SloRate], *more: object) -> None:
        super().__init__(*more)  # type: ignore[arg-type]
        self.rates = rates

    def _rate(self, slo: Slo) -> SloRate:
        return self.rates[self._base.about]


HELD = SloRate(True, Interval(38, 40, 42), "converged")
MORE = SloRate(True, Interval(380, 400, 420), "converged")
SLO = Slo((), 10.0)


def test_an_slo_is_reported_as_it_is_and_cured_and_the_cause_costs_the_difference() -> None:
    case = Rated({"as it is": HELD, "call": MORE}, [suspected("call")], {"call": Ruling.CAUSE})
    case.examine(SLO)
    assert case.slo is not None
    assert (case.slo.as_it_is, case.slo.cured) == (HELD, MORE)
    assert case.diagnoses[0].effect["slo_rps"] == Interval(338, 360, 382)


def test_of_several_causes_none_costs_all_of_it() -> None:
    faults = [suspected("first"), suspected("second", hidden_by="first")]
    case = Rated(
        {"as it is": HELD, "first, second": MORE}, faults, {"first": Ruling.CAUSE, "second": Ruling.CAUSE}
    )
    case.examine(SLO)
    assert case.slo is not None
    assert case.slo.cured == MORE
    assert all("slo_rps" not in diagnosis.effect for diagnosis in case.diagnoses)


def test_without_a_cure_there_is_nothing_to_search_and_that_is_reported() -> None:
    case = Rated({"as it is": HELD}, [suspected("call")], {})
    case.examine(SLO)
    assert case.slo is not None
    assert (case.slo.cured, case.slo.why_not_cured) == (None, "no cause was proven")


@pytest.mark.parametrize(
    ("ending", "interval", "holds"),
    [
        (Ending.CONVERGED, Interval(1, 2, 3), True),
        (Ending.SPENT, Interval(1, 2, 3), True),
        (Ending.NEVER, None, False),
        (Ending.CANNOT, None, None),
        (Ending.SPENT, None, None),
    ],
)
def test_whether_an_slo_holds_follows_from_how_its_search_ended(
    ending: Ending, interval: Interval | None, holds: bool | None
) -> None:
    found = slo_rate(RateFound(ending, interval, "so it is", ()))
    assert (found.holds, found.rate) == (holds, interval)


def test_what_an_examination_comes_to_obeys_the_published_schema(dying: Callable[..., Dying]) -> None:
    """With the evidence that the use case itself puts together, both arms and their intervals among it."""
    case = dying(ONE, ONE, ONE, ONE)
    case.examine()
    found = Examination(
        "shop", "uvicorn", surest_first(case.diagnoses), tuple(case.untried), case.screens, None, 1.0
    )
    document = json.loads(json.dumps(found.document(), allow_nan=False))
    jsonschema.validate(document, schema.doctor())
    (arms,) = (evidence for evidence in document["diagnoses"][0]["evidence"] if evidence["kind"] == "arms")
    low, mid, high = arms["levels"]["after"]["rps"]
    assert low <= mid <= high
    assert mid == pytest.approx(300)
    assert "requests per second" in diagnosis_page.render(found)


def test_the_rate_of_an_slo_is_searched_with_the_cures_in_its_servers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches: list[tuple[Search, Lab]] = []

    def searched(search: Search, lab: Lab, *_: object) -> RateCapacity:
        searches.append((search, lab))
        assert lab.injected is None or lab.injected.folder.is_dir()
        found = RateFound(Ending.CONVERGED, Interval(1, 2, 3), "", ())
        return RateCapacity((), found, None, None, 1, 1.0)

    monkeypatch.setattr(doctor, "run_search", searched)
    case = Scripted([suspected("call")], {"call": Ruling.CAUSE})
    case.examine(Slo((read("p99 < 100ms"),), 30.0))
    (plain, as_it_is), (cured, treated) = searches
    assert as_it_is.injected is None
    assert treated.injected is not None
    assert dict(treated.injected.give) == {"call": 1}
    assert not treated.injected.folder.exists(), "nothing of it stays"
    assert (plain.budget_s, cured.budget_s, plain.beside) == (30.0, 30.0, False)
    assert case.slo is not None
    assert case.slo.conditions == ("p99 < 100ms",)


def test_a_server_that_cannot_be_had_for_the_search_leaves_the_rate_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object) -> RateCapacity:
        raise NoServerError("uvicorn", "it did not start")

    monkeypatch.setattr(doctor, "run_search", refused)
    case = Scripted([suspected("call")], {})
    case.examine(Slo((read("p99 < 100ms"),), 30.0))
    assert case.slo is not None
    assert (case.slo.as_it_is.holds, case.slo.as_it_is.rate) == (None, None)
    assert "it did not start" in case.slo.as_it_is.because


def test_third_parties_take_longer_only_where_a_fault_looks_at_that(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[int] = []

    def step(
        _trial: object, _lab: object, _treatment: object, connections: int, *, each_s: float, called_ms: float
    ) -> None:
        assert (each_s, called_ms) == (0.0, 35.0)
        loads.append(connections)
        if len(loads) == 3:
            raise NoServerError("shop", "died of it")
        if len(loads) > 3:
            raise UpstreamError("its latencies cannot be made longer")

    monkeypatch.setattr(screens, "step", step)
    failed: list[str] = []
    Scripted([suspected("a")], {})._step_third_parties(None, 35.0, failed)
    assert loads == []
    case = Scripted([replace(suspected("a"), steps=True)], {})
    case._step_third_parties(None, 35.0, failed)
    case._step_third_parties(SEEN.slope, 35.0, failed)
    assert SEEN.slope is not None
    assert loads == [doctor.MANY_CONNECTIONS, 2 * SEEN.slope.knee]
    assert case._step_third_parties(None, 35.0, failed) is None
    assert case._step_third_parties(None, 35.0, failed) is None
    assert ["died of it" in failed[0], "longer" in failed[1]] == [True, True]


def looking(name: str, seconds: float = 1.0) -> Fault:
    """Return a fault that is looked for by a situation of its name."""
    return replace(suspected(name), look=lambda _: replace(PROBE, about=name, seconds=seconds))


@pytest.mark.parametrize(("budget_s", "looked"), [(300.0, ["first", "second", "third"]), (0.0, ["first"])])
def test_half_of_the_budget_is_left_for_experiments_whatever_looks_take(
    monkeypatch: pytest.MonkeyPatch, budget_s: float, looked: list[str]
) -> None:
    met: list[str] = []

    def meet(_server: object, probe: Probe) -> Met:
        met.append(probe.about)
        return Met(0, 16)

    monkeypatch.setattr(situations, "meet", meet)
    standing = SimpleNamespace(booted=SimpleNamespace(server=SimpleNamespace(exit=lambda: None)))
    faults = [looking("second", 2.0), looking("first", 1.0), looking("third", 3.0)]
    case, failed = Scripted(faults, {}, budget_s), list[str]()
    assert case._look(cast(Standing, standing), case._looks(), failed) == []
    assert met == looked
    assert failed == []
    assert case._postponed == {"first", "second", "third"} - set(looked)


def test_a_situation_of_many_requests_in_turn_is_left_for_later_of_an_app_for_which_that_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(situations, "meet", lambda *_: Met(0, 16))
    standing = SimpleNamespace(booted=SimpleNamespace(server=SimpleNamespace(exit=lambda: None)))
    many = replace(suspected("many"), look=lambda _: replace(PROBE, about="many", in_turn=60))
    case = Scripted([looking("first", 0.5), many, looking("third", 3.0)], {}, 300.0)
    case._each_s = 3.0
    case._look(cast(Standing, standing), case._looks(), [])
    assert (set(case._met), case._postponed) == ({"first", "third"}, {"many"})


def test_what_the_loads_speak_for_is_looked_at_first_and_what_ends_the_server_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ending(_: Setting) -> Probe:
        return replace(PROBE, about="last", ends=True)

    monkeypatch.setattr(doctor, "symptoms", lambda *_: SEEN)
    monkeypatch.setattr(doctor, "glances", lambda _: {"third": "workers are replaced", "last": "too"})
    faults = [looking("first", 1.0), replace(suspected("last"), look=ending), looking("third", 3.0)]
    case = Scripted(faults, {})
    load = SimpleNamespace(trial=case._trial)
    standing = cast(Standing, SimpleNamespace(loads=[load]))
    assert [name for name, _ in case._likely_first(case._looks(), standing)] == ["third", "first", "last"]


def test_what_there_was_no_time_to_look_at_is_not_tried_and_no_app_is_healthy_by_that() -> None:
    def unlooked(_: Symptoms) -> Unknown:
        return Unknown("nobody looked")

    faults = [
        replace(suspected("seen"), screen=lambda _: Absent("it is not")),
        replace(suspected("late"), screen=unlooked),
    ]
    case = Scripted(faults, {})
    case._postponed = {"seen", "late"}
    case._look_for_causes(SEEN)
    assert [diagnosis.id for diagnosis in case.diagnoses] == ["seen"]
    assert [untried.id for untried in case.untried] == ["late"]
    found = Examination("shop", "uvicorn", tuple(case.diagnoses), tuple(case.untried), (), None, 1.0)
    assert not found.healthy
    assert replace(found, untried=()).healthy


def test_time_that_the_search_with_cures_is_to_have_is_kept_only_once_there_is_a_cure() -> None:
    case = Scripted([suspected("a")], {}, 100.0)
    case._reserved_s = 60.0
    assert case._left_s() > 90
    case._base = case._base.plus(BEATING)
    assert case._left_s() < 45


@pytest.mark.parametrize("hangs_after", [["first"], ["second"], ["first", "second"], []])
def test_a_server_that_hangs_is_followed_by_a_fresh_one_for_what_is_left_to_look_at(
    monkeypatch: pytest.MonkeyPatch, hangs_after: list[str]
) -> None:
    met, stood = list[str](), list[object]()

    def meet(server: SimpleNamespace, probe: Probe) -> Met:
        if server.hangs:
            raise NoServerError("shop", "a plain request is not answered right (timeout)")
        met.append(probe.about)
        server.hangs = probe.about in hangs_after
        return Met(0, 16)

    def stand(*, hangs: bool = False) -> SimpleNamespace:
        server = SimpleNamespace(exit=lambda: None)
        stood.append(server)
        return SimpleNamespace(booted=SimpleNamespace(server=server), warm=lambda: None, hangs=hangs)

    monkeypatch.setattr(situations, "meet", meet)
    monkeypatch.setattr(doctor, "standing", lambda *_: nullcontext(stand()))
    faults = [looking("first", 1.0), looking("second", 2.0), looking("third", 3.0)]
    case, failed = Scripted(faults, {}), list[str]()
    # The slope has made the first one hang.
    left = case._look(cast(Standing, stand(hangs=True)), case._looks(), failed)
    case._look_on_fresh_servers(left, failed)
    assert met == ["first", "second", "third"]
    assert failed == []
    assert len(stood) == 2 + len(hangs_after)


@pytest.mark.parametrize(("budget_s", "looked"), [(100.0, True), (1.0, False)])
def test_what_half_of_the_budget_was_too_short_for_is_looked_at_when_no_experiment_needs_the_rest(
    monkeypatch: pytest.MonkeyPatch, budget_s: float, looked: bool
) -> None:
    def found(seen: Symptoms) -> Screened:
        return Absent("it was met") if "late" in seen.met else Unknown("nobody looked")

    server = SimpleNamespace(
        booted=SimpleNamespace(server=SimpleNamespace(exit=lambda: None)), warm=lambda: None
    )
    monkeypatch.setattr(situations, "meet", lambda *_: Met(0, 16))
    monkeypatch.setattr(doctor, "standing", lambda *_: nullcontext(server))
    case = Scripted([replace(looking("late", 5.0), screen=found)], {}, budget_s)
    case._postponed = {"late"}
    case._look_for_causes(SEEN)
    assert [diagnosis.ruling for diagnosis in case.diagnoses] == [Ruling.NOT_A_CAUSE] * looked
    assert [untried.id for untried in case.untried] == ["late"] * (not looked)


def test_a_situation_that_no_fresh_server_bears_is_left_out_and_the_others_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def meet(_server: object, probe: Probe) -> Met:
        if probe.about == "first":
            raise NoServerError("shop", "its process ended")
        return Met(0, 16)

    server = SimpleNamespace(
        booted=SimpleNamespace(server=SimpleNamespace(exit=lambda: None)), warm=lambda: None
    )
    monkeypatch.setattr(situations, "meet", meet)
    monkeypatch.setattr(doctor, "standing", lambda *_: nullcontext(server))

    faults = [looking("first"), looking("second")]
    case, failed = Scripted(faults, {}), list[str]()
    case._look_on_fresh_servers(case._looks(), failed)
    assert (list(case._met), failed) == (["second"], ["first: its process ended"])


def test_a_server_that_dies_with_the_most_throughput_is_followed_by_a_fresh_one_and_what_it_used_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert SEEN.slope is not None
    points, servers = SEEN.slope.points, list[int]()

    @contextmanager
    def stands(*_: object) -> Iterator[object]:
        servers.append(len(servers))
        in_use = InUse(descriptors=tuple((1000 * n, 100.0 * n) for n in range(6)))
        yield SimpleNamespace(warm=lambda: None, in_use=lambda: in_use, loads=[], number=servers[-1])

    def ends(server: SimpleNamespace, _points: object) -> tuple[tuple[float, float], ...]:
        if not server.number:
            raise NoServerError("shop", "nothing was answered right")
        return ((points[0].rps, points[-1].rps),) * 3

    monkeypatch.setattr(doctor, "standing", stands)
    monkeypatch.setattr(screens, "first", lambda _: 0.001)
    monkeypatch.setattr(screens, "alone", lambda _: points[0])
    monkeypatch.setattr(screens, "climb", lambda *_, **__: screens.Climbed(points, ""))
    monkeypatch.setattr(screens, "fresh_and_reused", lambda *_: SEEN.reused)
    monkeypatch.setattr(screens, "ends", ends)
    case, failed, looked = Scripted([suspected("a")], {}), list[str](), list[int]()

    def look(server: SimpleNamespace, *_: object) -> list[object]:
        looked.append(server.number)
        return []

    worn = list[int]()
    monkeypatch.setattr(case, "_look", look)
    monkeypatch.setattr(case, "_meet_worn", lambda server: worn.append(server.number))
    slope, _ = case._climb(failed)
    assert (slope.knee, looked, len(failed)) == (SEEN.slope.knee, [1], 1)
    assert worn == [0], "the one that may have been used up"
    assert case._in_use.descriptors[-1] == (5000, 500.0)


@pytest.mark.parametrize(
    ("took", "budget_s", "refused"),
    [((8.0, 8.0), 30.0, True), ((8.0, 0.01), 30.0, False), ((8.0, 8.0), 1e6, False), ((0.01,), 0.0, False)],
)
def test_an_app_whose_screens_take_longer_than_the_budget_is_refused_before_a_crowd_unless_only_its_first_was_slow(
    monkeypatch: pytest.MonkeyPatch, took: tuple[float, ...], budget_s: float, refused: bool
) -> None:
    asked = iter(took)
    monkeypatch.setattr(screens, "first", lambda _: next(asked))
    case = Scripted([suspected("a")], {}, budget_s)
    with pytest.raises(TooSlowError) if refused else nullcontext():
        case._refuse_slow(cast(Standing, object()))
    assert list(asked) == []


def test_a_cause_that_has_no_cure_here_is_found_once_whatever_is_cured_behind_it() -> None:
    lasting = replace(experiment("dose"), treatment=AS_IT_IS, proof="dose")
    cured = suspected("cured", 0.5)
    case = Scripted(
        [suspected("lasts", 0.9, lasting), cured], {AS_IT_IS.about: Ruling.CAUSE, "cured": Ruling.CAUSE}
    )
    case.examine()
    assert case.causes() == ["lasts", "cured"]
    assert case.tried == [AS_IT_IS.about, "cured"]


@pytest.mark.parametrize(
    ("took", "tried"),
    [
        (frozenset({"pool", "threads"}), []),
        (frozenset({"pool", "pool-beyond", "threads"}), ["pool"]),
        (frozenset({"pool", "pool-beyond", "threads", "threads-beyond"}), ["pool", "threads"]),
    ],
)
def test_of_several_bounds_those_are_tried_that_one_look_with_all_of_them_raised_shows_to_be_reached(
    monkeypatch: pytest.MonkeyPatch, took: frozenset[str], tried: list[str]
) -> None:
    looks = list[tuple[Treatment, instruments.Loaded]]()

    def measure_arm(
        _trial: object, _lab: object, treatment: Treatment, load: instruments.Loaded
    ) -> Arm[Figures]:
        looks.append((treatment, load))
        return Arm(figures(100), took)

    monkeypatch.setattr(instruments, "measure_arm", measure_arm)
    bounds = [
        suspected("pool", 0.9, experiment("pool", raises=True, connections=64)),
        suspected("threads", 0.8, experiment("threads", raises=True)),
    ]
    case = Scripted(bounds, {})
    case.examine()
    ((treatment, load),) = looks
    assert (set(treatment.give), load.connections) == ({"pool", "threads"}, 64)
    assert case.tried == tried
    assert [diagnosis.ruling for diagnosis in case.diagnoses] == [Ruling.NOT_A_CAUSE] * 2


@pytest.mark.parametrize("follows", [False, True])
def test_what_is_gone_behind_a_cure_comes_of_it_where_it_is_a_fault_that_others_bring_about(
    *, follows: bool
) -> None:
    def screen(seen: Symptoms) -> Screened:
        if "first" in seen.failed:
            return Absent("nothing shows")
        return Suspect(0.9, "it shows", (experiment("dose", proof="dose"),))

    brought = Fault("brought", "brought", ("somewhere#1",), "brought", "brought", screen, follows=follows)
    case = Scripted([brought, suspected("first", 0.5)], {"dose": Ruling.CAUSE, "first": Ruling.CAUSE})
    case.examine()
    assert case.causes() == ["brought", "first"]
    first_to_last = [(diagnosis.id, diagnosis.comes_of) for diagnosis in surest_first(case.diagnoses)]
    if follows:
        assert first_to_last == [("first", ""), ("brought", "first")]
        assert any("first" in line for line in diagnosis_lines(surest_first(case.diagnoses)[-1]))
    else:
        assert first_to_last == [("brought", ""), ("first", "")]


@pytest.mark.parametrize("hits", [0, 4])
def test_an_app_that_answers_nothing_under_load_is_examined_if_it_is_used_up_by_what_came_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, hits: int
) -> None:
    def fails(*_: object) -> None:
        raise NoServerError("shop", "nothing was answered right")

    @contextmanager
    def stands(*_: object) -> Iterator[object]:
        yield SimpleNamespace(warm=fails, booted=SimpleNamespace(boot_s=0.2))

    case = Scripted([replace(suspected("a"), wears=True)], {})
    monkeypatch.setattr(case, "_climb", fails)
    monkeypatch.setattr(doctor, "standing", stands)
    monkeypatch.setattr(situations, "meet", lambda *_: Met(hits, 4, figures={"answered": 40.0}))
    if not hits:
        with pytest.raises(NoServerError):
            Case._screen(case, first=True)
        return
    seen = Case._screen(case, first=True)
    assert seen.worn is not None
    assert (seen.slope, seen.worn.requests, seen.worn.met.hits) == (None, 40, 4)
    assert len(seen.failed) == 2
