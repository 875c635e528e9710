"""A made-up questionnaire: a table to start with, as people bring one, of which the truth is known."""

from __future__ import annotations

import numpy as np

from edgewise.model.mrf import MRF

# How people are (in log odds of yes when everything else is no), and what goes with what.
QUESTIONS = {
    "sleeps badly": -1.6,
    "is tired": -1.4,
    "has headaches": -1.8,
    "worries": -1.5,
    "feels low": -2.0,
    "feels lonely": -1.6,
    "sees friends": 0.9,
    "takes exercise": 0.3,
    "eats well": 0.6,
    "smokes": -1.1,
    "drinks coffee": 0.4,
    "owns a bicycle": 0.2,
}
LINKS = {
    ("sleeps badly", "is tired"): 1.9,
    ("sleeps badly", "worries"): 1.4,
    ("is tired", "has headaches"): 1.3,
    ("is tired", "drinks coffee"): 0.9,
    ("worries", "feels low"): 1.5,
    ("feels low", "feels lonely"): 1.6,
    ("feels lonely", "sees friends"): -1.7,
    ("feels low", "takes exercise"): -0.9,
    ("takes exercise", "eats well"): 1.2,
    ("eats well", "smokes"): -1.1,
    ("takes exercise", "owns a bicycle"): 1.0,
}
REGIONS = ("north", "south")
BLANK_SHARE = 0.01


def survey_model() -> MRF:
    """Twelve yes/no questions about how people are, with eleven links between them.

    Examples
    --------
    >>> model = survey_model()
    >>> model.n_variables, len(model.cliques)
    (12, 11)
    """
    names = tuple(QUESTIONS)
    cliques = [(names.index(one), names.index(other)) for one, other in LINKS]
    return MRF(np.array(list(QUESTIONS.values())), cliques, np.array(list(LINKS.values())), names)


def as_answered(rows: np.ndarray, rng: np.random.Generator) -> tuple[list[str], list[list[str]]]:
    """Rows of the model as a questionnaire comes back: words, a label of each person, and some blanks."""
    words = np.array(["no", "yes"], object)[rows]
    words[rng.random(rows.shape) < BLANK_SHARE] = ""
    regions = np.array(REGIONS, object)[rng.integers(0, 2, len(rows))]
    return ["region", *QUESTIONS], [[region, *row] for region, row in zip(regions.tolist(), words.tolist())]
