"""A run in a notebook: facts, and its metrics as small charts."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._run import Run

_MOST = 12


def chart(name: str, points: list[tuple[int, float]]) -> str:
    """A metric by round, as SVG."""
    width, height, left, top, bottom = 260, 110, 46, 20, 16
    values = [value for _, value in points if value == value and abs(value) != float("inf")]
    title = f'<text x="{left}" y="13" font-size="12" font-weight="600">{html.escape(name)}</text>'
    if not values:
        return f'<svg width="{width}" height="{height}" role="img">{title}</svg>'
    low, high = min(values), max(values)
    spread = (high - low) or 1.0
    first, last = points[0][0], points[-1][0]
    span = (last - first) or 1

    def place(at: int, value: float) -> str:
        x = left + (width - left - 8) * (at - first) / span
        y = top + 4 + (height - top - bottom - 8) * (1 - (value - low) / spread)
        return f"{x:.1f},{y:.1f}"

    step = max(1, len(points) // 400)
    line = " ".join(place(*point) for point in points[::step] if point[1] == point[1])
    return (
        f'<svg width="{width}" height="{height}" role="img" style="color:inherit" fill="currentColor" font-family="sans-serif">{title}'
        f'<text x="{left - 4}" y="{top + 10}" font-size="10" text-anchor="end">{high:.4g}</text>'
        f'<text x="{left - 4}" y="{height - bottom}" font-size="10" text-anchor="end">{low:.4g}</text>'
        f'<text x="{left}" y="{height - 3}" font-size="10">round {first}</text>'
        f'<text x="{width - 8}" y="{height - 3}" font-size="10" text-anchor="end">{last}</text>'
        f'<polyline points="{line}" fill="none" stroke="#2a6fdb" stroke-width="1.5"/></svg>'
    )


def page(run: "Run") -> str:
    """The run as HTML."""
    names = [name for name in run.metrics.keys() if ".histogram." not in name]
    charts = "".join(chart(name, run.series(name)) for name in names[:_MOST])
    more = f"<p>{len(names) - _MOST} more metrics are in <code>run.metrics</code>.</p>" if len(names) > _MOST else ""
    alarms = "".join(f"<li>{html.escape(str(alarm.get('text') or alarm))}</li>" for alarm in run.alarms)
    simulated = " Its answers come from simulated models." if run.summary.get("simulated") else ""
    return (
        f"<div><p><b>{html.escape(run.name)}</b>: {html.escape(run.status)}, {run.agents} agents, {run.rounds} rounds.{simulated}"
        f" Folder <code>{html.escape(str(run.folder))}</code>, digest <code>{html.escape(run.digest)}</code>.</p>"
        + (f"<ul>{alarms}</ul>" if alarms else "")
        + f'<div style="display:flex;flex-wrap:wrap;gap:8px">{charts}</div>{more}</div>'
    )
