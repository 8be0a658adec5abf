"""A line the size of a word: one quantity second by second, blocks side by side, stalls marked."""

from collections.abc import Sequence

from markupsafe import Markup

WIDTH, HEIGHT = 160.0, 32.0
GAP = 6.0
"""Between blocks, which ran minutes apart."""

Block = Sequence[float | None]


def sparkline(blocks: Sequence[Block], stalls: Sequence[Sequence[bool]], colour: str) -> Markup:
    """Draw from zero to the greatest value; `stalls` marks the seconds in which nothing was answered."""
    most = max((value for block in blocks for value in block if value is not None), default=0.0) or 1.0
    count = sum(len(block) for block in blocks)
    if not count:
        return Markup("")
    step = (WIDTH - GAP * (len(blocks) - 1)) / count
    shapes, left = [], 0.0
    for block, stalled in zip(blocks, stalls, strict=True):
        for second, is_stall in enumerate(stalled):
            if is_stall:
                each = len(block) / len(stalled)
                x, width = left + second * each * step, each * step
                shapes.append(
                    f'<rect x="{x:.1f}" y="0" width="{width:.1f}" height="{HEIGHT:g}" class="stall"/>'
                )
        shapes.append(f'<path d="{_path(block, left, step, most)}" stroke="{colour}"/>')
        left += len(block) * step + GAP
    frame = f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none" aria-hidden="true"'
    zero = f'<path class="zero" d="M0 {HEIGHT - 1:g}H{WIDTH:g}"/>'
    # Safe as it is: nothing in it but numbers and a colour of ours.
    return Markup(f'<svg class="spark" {frame}>{zero}{"".join(shapes)}</svg>')  # noqa: S704


def _path(block: Block, left: float, step: float, most: float) -> str:
    """Return the line through a block; it breaks where a value could not be told."""
    parts, pen_down = [], False
    for place, value in enumerate(block):
        if value is None:
            pen_down = False
            continue
        y = (HEIGHT - 1) - value / most * (HEIGHT - 3)
        # A second is as wide as its line: one sample alone still shows.
        x = left + place * step
        parts.append(f"{'L' if pen_down else 'M'}{x:.1f} {y:.1f}L{x + step:.1f} {y:.1f}")
        pen_down = True
    return "".join(parts)
