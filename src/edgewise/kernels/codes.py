"""Numbers with a meaning that Python and the kernels share; nothing here needs Numba."""

from __future__ import annotations

# What the prior says of a candidate: it shares p0, has a probability of its own, is always or never active.
# Those up to SEPARATE are free: their indicators are decided.
COMMON, SEPARATE, FORCED, FORBIDDEN = 0, 1, 2, 3

# Rows of a chain's tallies, one column per candidate. TRIES: decisions of its indicator; INCLUSION: sum over
# them of the probability that it was active afterwards; BIRTHS, DEATHS: accepted ones; DEATH_TRIES: decisions
# made while it was active; OCCUPIED: iterations of warm-up at whose end it was active. Every LAG iterations
# of warm-up SEEN is whether it is active, and LINGERED counts how often it was the last time too.
TRIES, INCLUSION, BIRTHS, DEATHS, DEATH_TRIES, OCCUPIED, SEEN, LINGERED = range(8)
TALLIES = 8
LAG = 10

# Counters of a chain. NOISE_SUM and NOISE_COUNT have two entries each: decisions of indicators, then redrawn
# parameters; DECISIONS counts both.
SWAP_TRIES, SWAP_ACCEPTS, RESAMPLINGS, SITE_UPDATES, ESS_SUM, ESS_COUNT = range(6)
NOISE_SUM, NOISE_COUNT, DECISIONS = 6, 8, 10
COLD_TRIES, COLD_ACCEPTS = 11, 12
# Of stretches on the surrogate: decided, accepted, refused because the graph is too wide for the oracle; sum
# of squares of the change of w; walks of single parameters; short stretches.
STRETCHES, STRETCHES_ACCEPTED, TOO_WIDE, WEIGHT_SQUARES, WALKS, WALKS_ACCEPTED = range(13, 19)
SHORTS, SHORTS_ACCEPTED, INNER, INNER_ACCEPTED = range(19, 23)
COUNTERS = 23

# Tasks of a chain of stretches.
LEARN, WALK, WEIGH = range(3)

# Entries of a chain's hyper-parameters; Algorithm 1 adds a third of its own. From MODEL_STATE on is what a
# model of inclusion keeps: communities of variables, or coefficients of attributes.
INCLUSION_RATE, SLAB_SCALE, MODEL_STATE = 0, 1, 2

# Kinds of models of inclusion.
NO_MODEL, COMMUNITIES, ATTRIBUTES = 0, 1, 2
# Rates of a chain that compares groups: how often a pair that is present differs, and by how much.
DIFFERENCE_RATE, DIFFERENCE_SCALE = 0, 1
