"""Small charts as inline SVG: histograms and traces that need no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from edgewise.plots.style import CYCLE

WIDTH, HEIGHT = 360, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 350, 10, 158


def histogram(
    values: np.ndarray, label: str, caption: str, *, whole: bool = False, prior: np.ndarray | None = None
) -> str:
    """Histogram of posterior draws.

    Parameters
    ----------
    values : array
        The draws.
    label, caption : str
        What the horizontal axis holds, and the sentence below the chart.
    whole : bool
        Whether the values are counts, so that bars stand at whole numbers.
    prior : (2, k) array, optional
        Places and prior densities, drawn as a dashed line.
    """
    values = np.asarray(values, float).ravel()
    low, high = float(values.min()), float(values.max())
    if whole:
        width = max(1, -(-int(high - low + 1) // 40))
        edges = np.arange(low, high + width + 1, width) - 0.5
    else:
        if high - low < 1e-9 * max(abs(high), 1.0):
            low, high = low - 0.05 * (abs(low) or 1), high + 0.05 * (abs(high) or 1)
        edges = np.linspace(low, high, 31)
    counts, edges = np.histogram(values, edges)
    heights = counts / len(values) if whole else counts / len(values) / np.diff(edges)
    start, stop = float(edges[0]), float(edges[-1])
    tallest = float(heights.max())
    if prior is not None:
        inside = (prior[0] >= start) & (prior[0] <= stop)
        prior = prior[:, inside]
        if prior.shape[1]:
            tallest = max(tallest, min(float(prior[1].max()), 1.5 * tallest))
    bars = "".join(
        f'<rect x="{_x(left, start, stop):.1f}" y="{_y(height, 0, tallest):.1f}" '
        f'width="{max(_x(right, start, stop) - _x(left, start, stop) - 0.6, 0.6):.1f}" '
        f'height="{_BOTTOM - _y(height, 0, tallest):.1f}" fill="var(--positive)" fill-opacity="0.75"/>'
        for left, right, height in zip(edges, edges[1:], heights)
        if height > 0
    )
    if prior is not None and prior.shape[1]:
        points = " ".join(
            f"{_x(x, start, stop):.1f},{max(_y(y, 0, tallest), _TOP):.1f}" for x, y in prior.T.tolist()
        )
        bars += f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-dasharray="5 3"/>'
    axis = "probability" if whole else "density"
    return _figure(_axes(start, stop, 0, tallest, label, axis, whole) + bars, label, caption)


def trace(chains: np.ndarray, label: str, caption: str, points: int = 300) -> str:
    """Trace of a quantity along every chain; long chains are shown by `points` of their draws."""
    chains = np.asarray(chains, float)
    length = chains.shape[1]
    shown = np.unique(np.linspace(0, length - 1, min(points, length)).round().astype(int))
    low, high = float(chains.min()), float(chains.max())
    if high - low < 1e-9 * max(abs(high), 1.0):
        low, high = low - 0.5, high + 0.5
    lines = []
    for k, chain in enumerate(chains):
        path = " ".join(
            f"{_x(t + 1, 1, max(length, 2)):.1f},{_y(chain[t], low, high):.1f}" for t in shown.tolist()
        )
        # The black of the cycle is the ink of the page, which is light on dark paper.
        shade = CYCLE[k % len(CYCLE)].replace("#000000", "currentColor")
        lines.append(
            f'<polyline points="{path}" fill="none" stroke="{shade}" stroke-width="0.8" '
            'stroke-opacity="0.8"/>'
        )
    body = _axes(1, max(length, 2), low, high, "kept draw", "", True) + "".join(lines)
    return _figure(body, label, caption)


def scatter(across: np.ndarray, up: np.ndarray, label: str, side: str, caption: str, most: int = 3000) -> str:
    """Dots of one quantity against another with the line on which they are equal."""
    across, up = np.asarray(across, float), np.asarray(up, float)
    if len(across) > most:
        kept = np.unique(np.linspace(0, len(across) - 1, most).astype(int))
        across, up = across[kept], up[kept]
    high = max(float(across.max()), float(up.max()), 1e-9)
    path = "".join(
        f"M{_x(x, 0, high):.1f} {_y(y, 0, high):.1f}h0" for x, y in zip(across.tolist(), up.tolist())
    )
    body = (
        f'<line x1="{_LEFT}" y1="{_BOTTOM}" x2="{_RIGHT}" y2="{_TOP}" stroke="currentColor"'
        ' stroke-dasharray="5 3"/>'
        f'<path d="{path}" stroke="var(--positive)" stroke-width="4" stroke-linecap="round"'
        ' stroke-opacity="0.6"/>'
    )
    return _figure(_axes(0, high, 0, high, label, side, False) + body, f"{side} against {label}", caption)


def count_bar(counts: Sequence[int], classes: Sequence[str], words: Sequence[str]) -> str:
    """One bar cut into categories, with a legend that holds the numbers."""
    total = max(sum(counts), 1)
    parts = "".join(
        f'<span class="{kind}" style="flex: {count / total:.5f} 0 auto" title="{escape(word)}: '
        f'{count:,}"></span>'
        for count, kind, word in zip(counts, classes, words)
        if count
    )
    legend = "".join(
        f'<li><span class="swatch {kind}"></span>{escape(word)}: <strong>{count:,}</strong></li>'
        for count, kind, word in zip(counts, classes, words)
    )
    spoken = ", ".join(f"{word} {count}" for count, word in zip(counts, words))
    return (
        f'<div class="counts" role="img" aria-label="{escape(spoken)}">{parts}</div>'
        f'<ul class="legend">{legend}</ul>'
    )


def _figure(body: str, label: str, caption: str) -> str:
    return (
        f'<figure class="chart"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(label)}">{body}</svg><figcaption>{escape(caption)}</figcaption></figure>'
    )


def _x(value: float, low: float, high: float) -> float:
    return _LEFT + (value - low) / (high - low) * (_RIGHT - _LEFT)


def _y(value: float, low: float, high: float) -> float:
    return _BOTTOM - (value - low) / ((high - low) or 1) * (_BOTTOM - _TOP)


def _axes(start: float, stop: float, low: float, high: float, label: str, side: str, whole: bool) -> str:
    parts = [
        f'<line class="axis" x1="{_LEFT}" x2="{_RIGHT}" y1="{_BOTTOM}" y2="{_BOTTOM}"/>',
        f'<text x="{(_LEFT + _RIGHT) / 2}" y="{HEIGHT - 6}" font-size="12" '
        f'text-anchor="middle">{escape(label)}</text>',
    ]
    for tick in ticks(start, stop, 5, whole):
        place = _x(tick, start, stop)
        parts.append(
            f'<line class="axis" x1="{place:.1f}" x2="{place:.1f}" y1="{_BOTTOM}" y2="{_BOTTOM + 4}"/>'
        )
        parts.append(
            f'<text x="{place:.1f}" y="{_BOTTOM + 17}" font-size="11" '
            f'text-anchor="middle">{_written(tick)}</text>'
        )
    for tick in ticks(low, high, 4, False):
        height = _y(tick, low, high)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>')
        parts.append(
            f'<text x="{_LEFT - 5}" y="{height + 4:.1f}" font-size="11" '
            f'text-anchor="end">{_written(tick)}</text>'
        )
    if side:
        middle = (_TOP + _BOTTOM) / 2
        parts.append(
            f'<text x="10" y="{middle}" font-size="11" text-anchor="middle" '
            f'transform="rotate(-90 10 {middle})">{escape(side)}</text>'
        )
    return "".join(parts)


def ticks(low: float, high: float, wanted: int, whole: bool) -> list[float]:
    """Round numbers between `low` and `high`, about `wanted` of them.

    >>> ticks(0.0, 0.9, 5, False)
    [0.0, 0.2, 0.4, 0.6, 0.8]
    """
    if not high > low:
        return [low]
    rough = (high - low) / wanted
    power = 10.0 ** np.floor(np.log10(rough))
    step = float(next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999))
    if whole:
        step = max(1.0, round(step))
    first = int(np.ceil(low / step - 1e-9))
    last = int(np.floor(high / step + 1e-9))
    return [round(k * step, 10) for k in range(first, last + 1)]


def _written(value: float) -> str:
    return f"{value:,.6g}".replace("-", "−")
