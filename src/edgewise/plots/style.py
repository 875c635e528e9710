"""Colours, names and axes that all plots share.

The colours are those of Okabe and Ito, which stay apart under the common kinds of colour blindness; sign
and evidence are never shown by colour alone (line style, marker or position says it again).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POSITIVE = "#0072B2"
NEGATIVE = "#D55E00"
NEUTRAL = "#7A7A7A"
INK = "#222222"
PALE = "#D9D9D9"
NODE = "#F2EBDD"
# Communities, as the report has them.
COMMUNITIES = (
    *("#E8B84A", "#6DB7E3", "#EE8F5E", "#5FC29A", "#D48FBB", "#A797E0", "#B5CC4A", "#A9A9A9"),
    *("#F2DA6B", "#4F97CC", "#C9694A", "#3E9E77"),
)
CYCLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A6FB0")
LINE_STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

LIGHTS = {"amber": "#FFC94D", "red": "#C0392B"}
EVIDENCE_COLOURS = {
    "strong presence": "#00508A",
    "presence": "#56B4E9",
    "inconclusive": "#8C8C8C",
    "absence": "#F0A860",
    "strong absence": "#B34700",
}


def new_axes(ax: Axes | None, width: float = 6.4, height: float = 4.8) -> Axes:
    """Return `ax`, or the axes of a new figure of the given size in inches."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def mark(ax: Axes, posterior: Any) -> Axes:
    """Write on a picture that its numbers are not to be trusted, where the light is not green."""
    from edgewise.posterior.diagnostics import diagnose

    found = diagnose(posterior)
    if found.light != "green":
        ax.set_title(f"{ax.get_title()}\n", fontsize=ax.title.get_fontsize())
        ax.annotate(
            f"{found.light}: {short('; '.join(found.reasons), 90)}",
            (0.5, 1.0),
            (0, 5),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8,
            color="white" if found.light == "red" else INK,
            bbox={"facecolor": LIGHTS[found.light], "edgecolor": "none", "boxstyle": "round,pad=0.3"},
            gid="light",
            annotation_clip=False,
        )
    return ax


def withheld(posterior: Any) -> bool:
    """Whether nothing of a posterior may be counted yet."""
    from edgewise.posterior.diagnostics import diagnose

    return diagnose(posterior).light == "red"


def tally(word: str, count: int, silent: bool) -> str:
    """A word of a legend with its number, which is withheld while the light is red.

    >>> tally("positive", 1200, False), tally("positive", 1200, True)
    ('positive: 1,200', 'positive')
    """
    return word if silent else f"{word}: {count:,}"


def plain(ax: Axes) -> None:
    """Take away the box and keep the two axes that carry numbers."""
    ax.spines[["top", "right"]].set_visible(False)


def short(name: object, length: int = 18) -> str:
    r"""Shorten a name and make it safe to draw: no line breaks, and dollars are not mathematics.

    >>> short("a name that is very long indeed", 12)
    'a name that…'
    >>> short("US$ or AU$")
    'US\\$ or AU\\$'
    """
    text = " ".join(str(name).split())
    if len(text) > length:
        text = text[: length - 1].rstrip() + "…"
    return text.replace("$", r"\$")


def pair_label(first: object, second: object, length: int = 18) -> str:
    """Label of an edge with both names shortened."""
    return f"{short(first, length)} – {short(second, length)}"


def clique_label(members: Sequence[int], names: Sequence[str], length: int = 18) -> str:
    """Label of a clique with all names shortened."""
    return " – ".join(short(names[i], length) for i in members)


def named_ticks(axis: Any, names: Sequence[str], room: int, length: int = 18, **text: Any) -> None:
    """Put names at the ticks 0, 1, 2, ..., every k-th only when there is room for no more than `room`."""
    step = max(1, -(-len(names) // room))
    places = list(range(0, len(names), step))
    axis.set_ticks(places, labels=[short(names[k], length) for k in places], **text)


def whole_numbers(axis: Any) -> None:
    """Put ticks at whole numbers only."""
    axis.get_major_locator().set_params(integer=True)


def colour(index: int) -> str:
    """Colour of the index-th of several curves."""
    return CYCLE[index % len(CYCLE)]
