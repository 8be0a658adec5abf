import json
import re
from dataclasses import replace
from html import unescape

import pytest
from tests.judge import made
from tests.report import made_up
from tests.report.made_up_verdict import verdict

from velodrome.model.load import Load, Open
from velodrome.model.measurement import WorkerUse
from velodrome.model.verdict import Verdict
from velodrome.report import evidence, html, names
from velodrome.report.evidence import styles
from velodrome.report.html import latency


@pytest.fixture(scope="module")
def page() -> str:
    return html.render(verdict(), made_up.results(), made_up.HEADER)


def test_the_verdict_comes_first(page: str) -> None:
    order = [
        page.index(f'<section id="{name}"')
        for name in ("verdict", "ranking", "latency", "cost", "time", "why", "proof")
    ]
    assert order == sorted(order)
    assert page.index("granian · rsgi") > order[0]


def test_nothing_loads_from_anywhere(page: str) -> None:
    assert not re.findall(
        r"""(?:src|href|action|data|poster)=["'](?!#|data:,")[^"']*["']""", page.replace('class="data"', "")
    )
    assert not re.search(r"https?://|@import|url\((?!#)", page)


def test_what_a_server_printed_is_text_everywhere(page: str) -> None:
    assert "<script>document" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert page.count("<script") == 2
    assert "&lt;script&gt;document.title" in page


def test_what_the_script_reads_cannot_end_its_element() -> None:
    written = html.for_script({"text": "</script><!-- & \u2028"})
    assert not set("<>&\u2028") & set(written)
    assert json.loads(written) == {"text": "</script><!-- & \u2028"}


def test_numbers_that_are_none_do_not_break_the_page() -> None:
    nan = made_up.measurement(made_up.RUNNERS[0], made_up.QUESTIONS[0], made_up.QUESTIONS[0].loads[0], 0)
    broken = replace(nan, load=replace(nan.load, throughput_rps=float("nan"), mean_in_flight=None))
    assert "NaN" not in html.render(verdict(), [broken], {})


def test_every_figure_has_a_sentence_and_every_cell_its_details(page: str) -> None:
    assert page.count("<figure>") == page.count("<figcaption>") == 9
    assert "<figcaption></figcaption>" not in page
    links = set(re.findall(r'href="#([^"]+)"', page))
    targets = set(re.findall(r' id="([^"]+)"', page))
    assert links <= targets
    assert sum(target.startswith("cell-") for target in targets) == 30


def test_a_command_of_several_lines_is_copied_as_it_is_and_broken_between_its_words_only() -> None:
    command = "pip install shop\ncat > serve.py <<'END'\nif ready:\n    serve(--port,  1)\nEND"
    first, *rest = verdict().answers
    page = html.render(replace(verdict(), answers=(replace(first, deploy=command), *rest)), [], {})
    code = re.search(r'<div class="command"><code>(.*?)</code>', page, re.DOTALL)
    assert code is not None
    assert unescape(re.sub(r"</?span>", "", code[1])) == command
    assert "<span>serve(--port,</span>" in code[1]


def test_a_race_without_results_still_makes_a_page() -> None:
    empty = Verdict("s", "", 1, (), ())
    assert "<span>velodrome</span> <span>run</span> <span>s</span>" in html.render(empty, [], {})


def test_a_contestant_whose_every_trial_failed_is_reported_with_its_last_words(page: str) -> None:
    assert "start: waitress did not start within 10 s (exit 1)" in page
    assert "ModuleNotFoundError: No module named &#39;shop&#39;" in page


def test_a_second_without_answers_is_a_stall_only_where_answers_are_usual() -> None:
    question = made_up.QUESTIONS[0]
    tornado = next(r for r in made_up.RUNNERS if r.stack == "tornado")
    stalled = made_up.measurement(tornado, question, question.loads[0], 0)
    assert evidence.stalled_seconds(stalled) == [False, False, True, False, False]
    slow = replace(stalled.load, series=tuple(replace(s, ok=s.ok and 2) for s in stalled.load.series))
    assert not any(evidence.stalled_seconds(replace(stalled, load=slow)))


def test_littles_law_is_written_as_arithmetic() -> None:
    question = made_up.QUESTIONS[1]
    made = made_up.measurement(made_up.RUNNERS[0], question, question.loads[0], 0)
    assert re.fullmatch(r"19\d/s × 205 ms = [34]\d\.\d \(4\d\.\d\)", evidence.little(made))


def _luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_and_lines_stand_out_in_light_and_in_dark(page: str) -> None:
    schemes = re.findall(r":root \{(.*?)\}", page, re.S)[:2]
    assert len(schemes) == 2
    for scheme in schemes:
        colours = dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{6});", scheme))
        for name in ("ink", "muted", "aside", "accent", "flag", *(f"c{i}" for i in range(8))):
            wanted = 3.0 if name.startswith("c") else 4.5
            for ground in ("paper", "raised"):
                light, dark = sorted((_luminance(colours[name]), _luminance(colours[ground])), reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= wanted, (name, ground)


def test_a_last_second_cut_short_is_a_rate_all_the_same() -> None:
    made = made_up.measurement(made_up.RUNNERS[0], made_up.QUESTIONS[0], made_up.QUESTIONS[0].loads[0], 0)
    series = tuple(replace(second, ok=70) for second in made.load.series[:2])
    short = replace(made, load=replace(made.load, duration_s=1.7, series=series))
    assert evidence.rates(short) == [70.0, pytest.approx(100.0)]
    sliver = replace(short, load=replace(short.load, duration_s=1.02))
    assert evidence.rates(sliver) == [70.0, None]


def test_the_first_sample_tells_the_cpu_since_the_span_began() -> None:
    sample = made_up.results()[0].server.samples[1]  # type: ignore[union-attr]
    assert evidence.cpu_shares([replace(sample, at_s=0.5, cpu_s=0.25)]) == [50.0]


def test_a_master_that_only_watches_is_not_counted_among_the_workers() -> None:
    made = made_up.measurement(made_up.RUNNERS[4], made_up.QUESTIONS[0], made_up.QUESTIONS[0].loads[0], 0)
    master = WorkerUse(1, 0.001, 0)
    watched = replace(made, server=replace(made.server, workers=(master, *made.server.workers)))
    assert evidence.balance(watched) == "71 / 29 % of CPU, 28 / 12 connections"


def test_percentiles_that_nobody_has_get_no_column_and_no_sentence() -> None:
    judged = verdict()
    short = tuple(
        replace(s, latency=tuple(replace(v, p99_ms=None, p99_9_ms=None) for v in s.latency))
        for s in judged.answers[0].standings
    )
    panel = latency(replace(judged.answers[0], standings=short), styles(judged))
    assert panel.heads == ("p50", "p90", "max")
    assert panel.see.startswith("9 of 10 requests were answered within")
    assert (
        names.far_percentile(replace(judged, answers=(replace(judged.answers[0], standings=short),)))[0]
        == "p90"
    )


def test_what_was_set_aside_is_not_on_the_front_of_cost(page: str) -> None:
    section = page[page.index('id="cost"') : page.index('id="time"')]
    third_party = section.split("<figure>")[2]
    assert "socketserver" not in third_party


def test_many_set_aside_results_do_not_bury_the_verdict() -> None:
    judged = replace(verdict(), set_aside=tuple(f"reason {number}." for number in range(60)))
    page = html.render(judged, made_up.results(), made_up.HEADER)
    assert "<summary>55 more</summary>" in page


def test_a_ranked_contestant_with_several_flags_shows_their_number_others_the_gravest() -> None:
    first = verdict().answers[0].standings[0]
    flagged = replace(
        first, notes=("open-500, too short", "closed-40, set aside: other load"), ceiling="2 ÷ 0.2 s = 10/s"
    )
    assert names.remark(flagged) == "ceiling: 2 ÷ 0.2 s = 10/s; ⚑ 2 flags, see the report"
    unranked = replace(flagged, rank=None, ceiling="")
    assert names.remark(unranked) == "⚑ closed-40, set aside: other load (+1 more in the report)"


def test_a_page_where_nobody_kept_up_has_curves_and_no_percentiles() -> None:
    load = Load(Open(1000), 2.0)
    question = replace(made.HELLO_Q, loads=(load,))
    slow = [
        made.measured(made.trial(name, question, load=load), 50.0, latencies_ms=[5.0] * 100)
        for name in ("granian", "uvicorn")
    ]
    assert "Latency" in html.render(made.verdict([*slow], question), slow, {})
