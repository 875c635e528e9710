"""All that chains of stretches do, behind one entry.

Learning, walking and weighing share nearly all of their code: compiled together they are compiled once.
"""

from __future__ import annotations

from edgewise.kernels.codes import LEARN, WALK
from edgewise.kernels.compiling import entry
from edgewise.kernels.learning import learn
from edgewise.kernels.stretches import run_stretches, weigh


@entry
def perform(
    task, rules, sums, chain, surrogate, oracle, decider, blanks, school, iteration, iterations, thin,
    recorder,
):  # fmt: skip
    """Do one of the tasks (``codes.py``); returns how many iterations ran."""
    if task == LEARN:
        learn(rules, sums, chain, surrogate, oracle, decider, blanks, school, iterations)
        return iterations
    if task == WALK:
        return run_stretches(
            rules, sums, chain, surrogate, oracle, decider, blanks, iteration, iterations, thin, recorder
        )
    weigh(rules, sums, chain, surrogate, oracle, decider, blanks)
    return 0
