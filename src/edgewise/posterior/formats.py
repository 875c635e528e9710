"""Formats of posterior files: the one that is written, and how files of earlier ones are brought up to it.

Every format that a version of edgewise has written stays readable: :data:`UPGRADES` holds one step from each
to the next, on the arrays of the file and its record (the JSON of ``metadata``). To change the file, raise
:data:`FORMAT_VERSION` and add the step from the format before; ``tests/fixtures`` holds a file of each.

======  ==========  =====================================================================================
format  written by  what is new
======  ==========  =====================================================================================
1       0.1, 0.2    ragged draws, data sums, engines' sums (``sum_...``) per chain and candidate
2       0.3 (early) the record names the axes of every ``sum_...``, so that a sum may have axes of its own
3       0.3         the record has the ``scales`` of variables with more than two levels; ``matrix``
4       0.3         fields that may be absent: ``model_state``, communities or coefficients of the draws;
                    ``strata`` in the facts of the run, with ``group_coupling`` and ``difference_rates``;
                    ``imputed_...``, the cells that were blank
======  ==========  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

FORMAT_VERSION = 4

Arrays = dict[str, np.ndarray]
Record = dict[str, Any]


def upgrade(version: int, arrays: Arrays, record: Record) -> tuple[Arrays, Record]:
    """Bring the contents of a file of format `version` to :data:`FORMAT_VERSION`, one format at a time."""
    new_arrays, new_record = dict(arrays), dict(record)
    for step in range(version, FORMAT_VERSION):
        UPGRADES[step](new_arrays, new_record)
    return new_arrays, new_record


def _from_1(arrays: Arrays, record: Record) -> None:
    names = sorted(name.removeprefix("sum_") for name in arrays if name.startswith("sum_"))
    record["edge_sums"] = {name: ["chain", "clique"] for name in names}


def _from_2(arrays: Arrays, record: Record) -> None:
    record["scales"] = None


def _from_3(arrays: Arrays, record: Record) -> None:
    """What is new may be absent."""


UPGRADES: dict[int, Callable[[Arrays, Record], None]] = {1: _from_1, 2: _from_2, 3: _from_3}
