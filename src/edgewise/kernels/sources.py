"""Sources of means: what a move along a line asks of whoever knows the model's probabilities.

A move knows how to propose and what ratio to accept; it does not know who answers. A source answers three
questions about a line: the *cells* of the variables it touches, the *growth* along it with its noise, and it
*follows* the move when that is accepted. ``table.py`` answers with the table of all states, exactly;
``swarm.py`` with weighted particles. The answer is chosen by the type of ``source`` when the kernel is
compiled.

Common arguments: ``values`` (strata, cells) and base ``cells`` are those of the line (``lines.py``);
``noise`` receives the variances of the log ratio forwards and in reverse; growths are returned as
sum_g N_g (log Z' - log Z). Parameters in ``chain`` are those before the move while a source follows, but for
the bias that :func:`follow_bias` is about, which has moved.
"""

from __future__ import annotations

from edgewise.kernels.compiling import question


@question
def is_noisy(source):
    """Whether growths are estimates, so that a decision costs work that a preview may save."""


@question
def clique_cells(source, a, value, chain, cells):
    """Probabilities of the joint states of candidate `a`, whose parameter is `value`."""


@question
def clique_growth(source, a, value, target, cells, values, rows, chain, noise):
    """Growth when candidate `a` moves from `value` to `target` along its line."""


@question
def follow_clique(source, a, value, target, cells, values, rules, chain):
    """Be a source for the model after that move."""


@question
def block_growth(source, a, value, target, cells, features, rows, chain, noise):
    """Growth when the matrix of candidate `a` moves; `features` are those of the cells."""


@question
def follow_block(source, a, change, cells, features, rules, chain):
    """Be a source for the model after the matrix of candidate `a` has moved by `change`."""


@question
def bias_cells(source, g, i, cells):
    """Probabilities of the levels that line `i` of the biases touches in stratum `g`, alone in `cells`."""


@question
def bias_growth(source, g, i, t, cells, values, rows, noise):
    """Growth when the biases of stratum `g`, whose `cells`, `values` and `rows` these are, move by `t`."""


@question
def follow_bias(source, g, i, t, cells, values, chain):
    """Be a source for the model after that move."""


@question
def swap_cells(source, i, j, k, value, theta_jk, cells):
    """Probabilities of the joint states of (i, j, k), given the couplings of (i, j) and (j, k)."""


@question
def swap_growth(source, i, j, k, value, theta_jk, cells, shifts, rows, noise):
    """Growth when the log potential of each joint state of (i, j, k) moves by `shifts`."""


@question
def settle(source, moved, chain):
    """Between two decisions: make what is needed so that the next one is not correlated with the last."""


@question
def refresh(source, iteration, chain):
    """At the beginning of an iteration: remove rounding that has added up, where it is time."""
