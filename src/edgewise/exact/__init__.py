"""log Z, means, covariances, conditionals and samples without approximation: enumeration, elimination."""

from edgewise.exact.inference import (
    conditional,
    conditional_log_probability,
    covariance,
    elimination_width,
    feasible,
    level_marginals,
    log_partition,
    marginals,
    means,
    pair_marginals,
    probabilities,
    sample,
    states,
)

__all__ = [
    "conditional",
    "conditional_log_probability",
    "covariance",
    "elimination_width",
    "feasible",
    "level_marginals",
    "log_partition",
    "marginals",
    "means",
    "pair_marginals",
    "probabilities",
    "sample",
    "states",
]
