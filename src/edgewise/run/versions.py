"""Versions on which the draws depend."""

from __future__ import annotations

import platform
from importlib.metadata import version

import numpy as np

from edgewise._version import __version__


def versions() -> dict[str, str]:
    """Versions on which the draws depend."""
    return {
        "edgewise": __version__,
        "numpy": np.__version__,
        "numba": version("numba"),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
