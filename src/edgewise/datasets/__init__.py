"""Models with a known truth, and real binary data: diabetes, handwritten digits and the MNIST patch."""

from __future__ import annotations

from edgewise.datasets.diabetes import diabetes
from edgewise.datasets.digits import DIGITS_SHAPE, digits
from edgewise.datasets.mnist import PATCH_SHAPE, mnist_patch, mnist_source
from edgewise.datasets.questionnaires import nominal_model, ordinal_model
from edgewise.datasets.simulated import block_model, lattice_model, random_model
from edgewise.datasets.survey import survey_model

__all__ = [
    "DIGITS_SHAPE",
    "PATCH_SHAPE",
    "block_model",
    "diabetes",
    "digits",
    "lattice_model",
    "mnist_patch",
    "mnist_source",
    "nominal_model",
    "ordinal_model",
    "random_model",
    "survey_model",
]
