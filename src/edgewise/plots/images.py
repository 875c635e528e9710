"""Rows of binary data shown as images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.errors import DataError
from edgewise.plots.style import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def image_sheet(
    rows: Any,
    shape: tuple[int, int],
    ax: Axes | None = None,
    *,
    across: int | None = None,
    title: str | None = None,
) -> Axes:
    """Show rows of 0/1 data (or of probabilities) as images on one sheet.

    Parameters
    ----------
    rows : (n, height * width) array
        One image per row, pixels row by row; values between 0 (white) and 1 (black).
    shape : (height, width)
        Size of one image in pixels.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    across : int, optional
        Images per line of the sheet; about square by default.
    title : str, optional
        Title of the axes.

    Examples
    --------
    >>> from edgewise import datasets, plots
    >>> ax = plots.image_sheet(datasets.digits()[:10], datasets.DIGITS_SHAPE)
    >>> len(ax.images)
    1
    """
    values = np.atleast_2d(np.asarray(rows, float))
    height, width = shape
    if values.shape[1] != height * width:
        raise DataError(
            f"Images of {height} x {width} have {height * width} pixels and the rows have {values.shape[1]} "
            "values; give the right shape."
        )
    count = len(values)
    across = across or max(1, int(np.ceil((count * height / width) ** 0.5)))
    down = max(1, -(-count // across))
    sheet = np.full((down * (height + 1) + 1, across * (width + 1) + 1), np.nan)
    for k, image in enumerate(values.reshape(count, height, width)):
        top, left = 1 + k // across * (height + 1), 1 + k % across * (width + 1)
        sheet[top : top + height, left : left + width] = image
    from matplotlib import colormaps

    ax = new_axes(ax, 5.4, 5.4 * min(1.6, sheet.shape[0] / sheet.shape[1]) + 0.4)
    shades = colormaps["Greys"].with_extremes(bad="#9CC3DD")
    ax.imshow(sheet, cmap=shades, vmin=0, vmax=1, interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    ax.set_title(title or f"{count:,} images of {height} x {width} pixels")
    ax.set_xlabel("white = 0, black = 1")
    return ax


def samples(
    source: Any,
    ax: Axes | None = None,
    *,
    shape: tuple[int, int] | None = None,
    count: int = 36,
    sweeps: int = 500,
    seed: int = 0,
    title: str | None = None,
) -> Axes:
    """Draw new rows from a learned model by Gibbs sampling and show them as images.

    A posterior is sampled as a mixture: every image comes from another posterior draw. An MRF or a fitted
    lasso is sampled as it is.

    Examples
    --------
    >>> from edgewise import MRF, plots
    >>> import numpy as np
    >>> pairs = [(k, k + 1) for k in range(8)]
    >>> ax = plots.samples(MRF(np.zeros(9), pairs, np.ones(8)), shape=(3, 3), count=4)
    >>> len(ax.images)
    1
    """
    found = getattr(source, "posterior_", source)
    found = getattr(found, "model_", found)
    p = int(found.n_variables)
    if shape is None:
        side = int(round(p**0.5))
        if side * side != p:
            raise DataError(f"The {p} variables are not a square image; give shape=(height, width).")
        shape = (side, side)
    random = np.random.default_rng(seed)
    if hasattr(found, "mixture"):
        rows = _one_of_each(found.mixture(n=count, seed=seed), sweeps, random)
        origin = "posterior"
    else:
        rows = found.gibbs(count, sweeps, random)
        origin = "model"
    title = title or f"{len(rows)} samples from the {origin} ({sweeps:,} Gibbs sweeps)"
    return image_sheet(rows, shape, ax, title=title)


def _one_of_each(models: Sequence[Any], sweeps: int, random: np.random.Generator) -> np.ndarray:
    """One Gibbs sample of each of several models, all chains in step."""
    if any(len(clique) > 2 for model in models for clique in model.cliques):
        return np.concatenate([model.gibbs(1, sweeps, random) for model in models], axis=0)
    coupling = np.stack([model.coupling for model in models])
    biases = np.stack([model.biases for model in models])
    state = (random.random(biases.shape) < 0.5).astype(float)
    for _ in range(sweeps):
        for i in range(state.shape[1]):
            field = biases[:, i] + np.einsum("nj,nj->n", coupling[:, i], state)
            # u < 1 / (1 + exp(-field)), written so that nothing overflows.
            uniform = random.random(len(state))
            state[:, i] = np.log(uniform) - np.log1p(-uniform) < field
    return state
