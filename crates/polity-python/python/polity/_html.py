"""A run in a notebook: facts, and its metrics as small charts."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any

MOST_CHARTS = 12


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


def page(facts: Mapping[str, Any], alarms: Iterable[str], series: Mapping[str, list[tuple[int, float]]], more: int) -> str:
    """A run as HTML. `facts`: name, status, agents, rounds, folder, digest, simulated. `more`: metrics without a chart."""
    text = {name: html.escape(str(value)) for name, value in facts.items()}
    charts = "".join(chart(name, points) for name, points in series.items())
    rest = f"<p>{more} more metrics are in <code>run.metrics</code>.</p>" if more > 0 else ""
    items = "".join(f"<li>{html.escape(alarm)}</li>" for alarm in alarms)
    simulated = " Its answers come from simulated models." if facts["simulated"] else ""
    return (
        f"<div><p><b>{text['name']}</b>: {text['status']}, {text['agents']} agents, {text['rounds']} rounds.{simulated}"
        f" Folder <code>{text['folder']}</code>, digest <code>{text['digest']}</code>.</p>"
        + (f"<ul>{items}</ul>" if items else "")
        + f'<div style="display:flex;flex-wrap:wrap;gap:8px">{charts}</div>{rest}</div>'
    )
