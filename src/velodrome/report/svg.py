"""Charts as inline SVG, drawn offline by Vega-Lite; colours are CSS variables, for light and dark alike."""

import hashlib
import os
import re
import threading
from functools import cache

import altair as alt
import vl_convert
from markupsafe import Markup

INK, MUTED, GRID, ASIDE, PAPER = "var(--ink)", "var(--muted)", "var(--grid)", "var(--aside)", "var(--paper)"
COLOURS = tuple(f"var(--c{number})" for number in range(8))
DASHES: tuple[list[int], ...] = ([], [6, 3], [2, 2], [8, 3, 2, 3])
THREADS = 6
"""That V8 and what drives it start, beside one for each CPU."""

_ATTRIBUTES = r'(?: [^<>"]*"[^"]*")*'
_LABELLED = re.compile(rf'<(path|line)({_ATTRIBUTES}?) aria-label="([^"]*)"({_ATTRIBUTES})/>')
_NOISE = re.compile(
    r" (?:xmlns(?::xlink)?|version|class|role|aria-hidden|aria-roledescription|pointer-events|font-family)"
    r'="[^"]*"'
)


def style_of(place: int) -> tuple[str, list[int]]:
    """Return colour and dash of the contestant at `place`: no two of the first 32 share both."""
    return COLOURS[place % 8], DASHES[(place + place // 8) % 4]


def drawn(chart: alt.LayerChart | alt.FacetChart, label: str) -> Markup:
    """Return the chart as SVG that scales with its column; `label` tells it to those who do not see it."""
    configured = (
        chart.configure(
            background="transparent",
            font="sans-serif",
            padding={"left": 12, "right": 4, "top": 2, "bottom": 2},
        )
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=MUTED,
            titleColor=MUTED,
            titleFontWeight="normal",
            labelFontSize=11,
            titleFontSize=11,
            gridColor=GRID,
            domainColor=GRID,
            tickColor=GRID,
            labelFlush=False,
        )
    )
    _refuse_without_threads()
    return tidied(vl_convert.vegalite_to_svg(configured.to_dict()), label)


@cache
def _refuse_without_threads() -> None:
    """Raise RuntimeError where threads cannot be started: V8, which draws, would abort the whole process."""
    gate = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range((os.cpu_count() or 1) + THREADS):
            one = threading.Thread(target=gate.wait, name="room for V8")
            one.start()
            started.append(one)
    finally:
        gate.set()
        for one in started:
            one.join()


def tidied(svg: str, label: str) -> Markup:
    """Make a drawn SVG fit for a page: names of its own, hints under the pointer, nothing said twice."""
    # Two drawings in one page must not share the ids of their clips and gradients.
    own = f"f{hashlib.sha256(svg.encode()).hexdigest()[:8]}-"
    svg = re.sub(r'(id="|url\(#)', rf"\g<1>{own}", svg)
    svg = _LABELLED.sub(r"<\1\2\4><title>\3</title></\1>", svg)
    svg = _NOISE.sub("", svg)
    svg = re.sub(r' aria-label="[^"]*"', "", svg)
    size = re.search(r'viewBox="0 0 (\d+(?:\.\d+)?)', svg)
    width = size[1] if size else "360"
    svg = re.sub(r'<svg width="[^"]*" height="[^"]*"', "<svg", svg, count=1)
    opening = Markup('<svg role="img" aria-label="{}" style="max-width:{}px"').format(
        label, round(float(width) * 1.35)
    )
    # The text of marks was escaped by Vega; everything else was written by it.
    return Markup(opening + Markup(svg.removeprefix("<svg")))  # noqa: S704
