"""The picture of ``benchmarks/recovery.py``: one line for each system, on a scale of powers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

WIDTH, LEFT, RIGHT, TOP, ROW = 760, 170, 110, 64, 44
TICKS = {1: "1 s", 5: "5 s", 10: "10 s", 30: "30 s", 60: "1 min", 300: "5 min", 900: "15 min"}
FIRST = "EchoMQBroker"
TITLE = "From kill -9 of a worker to the second start of its jobs"
SUBTITLE = "line: first to last start in all runs; mark: median; all defaults"


def picture(measured: Mapping[str, Sequence[float]]) -> str:
    """Draw how long the jobs of killed workers waited.

    Parameters:
      measured(Mapping): By system, the seconds from each kill to each second start.

    Returns:
      str: An SVG that can be read on light and dark pages.
    """
    longest = max([60.0, *(max(seconds) for seconds in measured.values())]) * 1.1
    height = TOP + ROW * len(measured) + 34

    def at(seconds: float) -> float:
        share = math.log10(max(seconds, 1)) / math.log10(longest)
        return LEFT + (WIDTH - LEFT - RIGHT) * share

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="14">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="16" y="24" font-size="16" fill="#111">{TITLE}</text>',
        f'<text x="16" y="44" fill="#555">{SUBTITLE}</text>',
    ]
    for second, label in TICKS.items():
        if second <= longest:
            x, bottom = at(second), TOP + ROW * len(measured)
            lines.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>')
            lines.append(f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle" fill="#555">{label}</text>')
    for row, (system, seconds) in enumerate(measured.items()):
        y, median = TOP + ROW * row + ROW / 2, statistics.median(seconds)
        color = "#0a7d34" if system == FIRST else "#8a8a8a"
        first, last = at(min(seconds)), at(max(seconds))
        lines += [
            f'<text x="16" y="{y + 5:.1f}" fill="#111">{system}</text>',
            f'<line x1="{first:.1f}" y1="{y}" x2="{last:.1f}" y2="{y}" stroke="{color}" stroke-width="8" '
            'stroke-linecap="round"/>',
            f'<circle cx="{at(median):.1f}" cy="{y}" r="8" fill="#fff" stroke="{color}" stroke-width="4"/>',
            f'<text x="{last + 16:.1f}" y="{y + 5:.1f}" fill="#111">{_shown(median)}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def _shown(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
