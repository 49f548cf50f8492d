"""The directive `schedule-curve`: the learning rate over the steps, drawn from the code itself."""

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

from t2t_lite.train import schedule

_WIDTH, _HEIGHT, _MARGIN = 560, 220, 45
_STEPS = 40_000
_SETS = (("base, d_model 512", 512, "#2563eb"), ("big, d_model 1024", 1024, "#c2410c"))


class ScheduleCurve(Directive):
    """Draws the paper's learning rate for the base and the big model."""

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", svg(), format="html")]


def svg() -> str:
    """Return the drawing as an SVG element."""
    top = schedule.learning_rate(4000, d_model=512, warmup_steps=4000)
    parts = [_text(_MARGIN, 14, "learning rate"), _text(_WIDTH - 40, _HEIGHT - 8, "step")]
    for share in (0, 0.5, 1):
        y = _y(share)
        parts.append(f'<path d="M{_MARGIN} {y}H{_WIDTH}" stroke="#8886" fill="none"/>')
        parts.append(_text(2, y + 4, f"{share * top:.5f}"))
    for step in range(0, _STEPS + 1, 10_000):
        parts.append(_text(_x(step) - 14, _HEIGHT - 22, f"{step:,}"))
    for number, (name, d_model, colour) in enumerate(_SETS):
        points = []
        for step in range(1, _STEPS + 1, 100):
            rate = schedule.learning_rate(step, d_model=d_model, warmup_steps=4000)
            points.append(f"{_x(step):.1f},{_y(rate / top):.1f}")
        line = " ".join(points)
        style = f'fill="none" stroke="{colour}" stroke-width="2"'
        parts.append(f'<polyline points="{line}" {style}/>')
        parts.append(_text(_WIDTH - 170, 40 + 18 * number, name, colour))
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" style="max-width:{_WIDTH}px;width:100%" role="img" '
        f'aria-label="It rises for 4,000 steps and then falls">{"".join(parts)}</svg>'
    )


def _x(step: int) -> float:
    return _MARGIN + 8 + (_WIDTH - _MARGIN - 40) * step / _STEPS


def _y(share: float) -> float:
    return _HEIGHT - 40 - (_HEIGHT - 70) * share


def _text(x: float, y: float, text: str, colour: str = "currentColor") -> str:
    return f'<text x="{x}" y="{y}" font-size="11" fill="{colour}">{text}</text>'


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("schedule-curve", ScheduleCurve)
    return {"parallel_read_safe": True}
