"""Kept draws of a chain and what plain arrays of them tell: effective draws and R-hat."""

from edgewise.draws.draws import Draws

__all__ = ["Draws"]
