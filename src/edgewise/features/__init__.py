"""Candidate cliques, index <-> clique, and what the data say of them."""

from edgewise.features.candidates import MOST_LISTED as MOST_LISTED
from edgewise.features.candidates import Clique as Clique
from edgewise.features.candidates import FeatureArgument as FeatureArgument
from edgewise.features.candidates import Features, check_candidates, check_laid_out, resolve_features
from edgewise.features.statistics import Statistics, level_statistics, sufficient_statistics

__all__ = [
    "Features",
    "Statistics",
    "check_candidates",
    "check_laid_out",
    "level_statistics",
    "resolve_features",
    "sufficient_statistics",
]
