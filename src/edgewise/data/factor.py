"""A column of anything as codes and labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.data.labels import plain_label

MANY = 100
Where = Callable[[int], str]


@dataclass(frozen=True, eq=False)
class Factor:
    """A column of anything: ``labels[codes[row]]`` is the cell, and a code of -1 is a blank.

    `exhausted` says that further labels exist which all share the last code; `ordered` that the labels have
    an order, and stand in it.
    """

    codes: np.ndarray
    labels: list[Any]
    exhausted: bool = False
    ordered: bool = False


def factorise(values: Any) -> Factor:
    """Codes and labels of a pandas array, an object array or a list; TypeError for cells such as lists."""
    import pandas as pd

    codes, labels = pd.factorize(values, use_na_sentinel=True)
    return Factor(codes, [plain_label(label) for label in labels])
