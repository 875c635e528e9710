"""Conditional probabilities, log-likelihoods with exact or annealed log Z, and mixtures of models."""

from edgewise.predict.scores import (
    LogLikelihood,
    ais_log_partition,
    components,
    conditional_log_likelihood,
    conditional_probability,
    grid_windows,
    level_probabilities,
    log_likelihood,
    pseudo_log_likelihood,
    random_groups,
    random_windows,
)

__all__ = [
    "LogLikelihood",
    "ais_log_partition",
    "components",
    "conditional_log_likelihood",
    "conditional_probability",
    "grid_windows",
    "level_probabilities",
    "log_likelihood",
    "pseudo_log_likelihood",
    "random_groups",
    "random_windows",
]
