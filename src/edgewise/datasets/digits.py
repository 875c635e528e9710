"""Scikit-learn's 8 x 8 handwritten digits as binary data: real data that is always at hand."""

from __future__ import annotations

import numpy as np

DIGITS_SHAPE = (8, 8)
HALF_INK = 8


def digits() -> np.ndarray:
    """Handwritten digits of 8 x 8 pixels, one where a pixel has half of the full ink or more.

    Returns
    -------
    uint8 array (1797, 64)
        Pixels row by row. Ten pixels at the border are never inked; fit with ``constant="drop"`` or
        ``constant="keep"``.

    Examples
    --------
    >>> digits().shape
    (1797, 64)
    """
    from sklearn.datasets import load_digits

    return np.asarray((load_digits().data >= HALF_INK).astype(np.uint8))
