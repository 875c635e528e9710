"""What a chain on lines is made of: rules, sums, the moving state, working space, and the recorder.

**Rules** are fixed for the whole run, whatever the chain does, and saved with it. A resumed chain takes them
from its state and never computes them again: once sums move (imputed cells), they would come out differently.

``centres[g, i]``         m_i of (5.2): where the lines of pairs and biases are centred, in stratum g
``clique_centres[g, a]``  the same for cliques of three and more (no columns where there are pairs only)
``levels[i]``             number of levels of variable i, two for all so far
``scores[i, c]``          score of level c of variable i, from 0 to 1
``pair_index[i, j]``      candidate of the pair (i, j) in either order, or -1
``prior``                 :class:`~edgewise.kernels.hyper.PriorRules`

The centres are the data's own frequencies with half a row added to each level, as they are when the chain is
made. Any fixed values would give the same posterior; these make the lines nearly orthogonal to the biases.

**Sums** are what the data say. A chain may change them between moves, never within one; no rule depends on
them. ``rows[g]`` N, ``singles[g, i]`` s_i and ``cliques[g, a]`` s_a of stratum g.

**Chain** is what moves: ``theta[a]`` (zero where inactive), ``bias[i]``, ``hyper`` (p0, sigma0, and what a
model of inclusion keeps), the ``graph`` (``graph.py``), the random ``stream``, and the ``tallies`` and
``counters`` of ``codes.py``. The factors of a slab and the log odds of a model move, too; ``hyper.py``
draws them.

**Scan** says what an iteration visits; learned in warm-up and frozen when it ends, because a choice that
depends on the state breaks reversibility. ``hot`` candidates have their indicators decided with
``probability``; ``cold_flips`` cold candidates are tried alike in both states, ``cold_moves`` births and
deaths choose as (7.3) says; then all active parameters are redrawn. **Rivals** are two candidates each,
``pairs[r]``, that share a variable; a swap between them is tried with probability ``rate[r]``, and
``tallies`` count the tries and add up their acceptance probabilities. A **FullScan** has no cold
candidates and redraws an active one in the visit that decides its indicator, from the same cells; it is for
sources without noise, whose second decision is correlated with the first by nothing but the state. A
**LineScan** has no swaps, and names the ``lines`` of the thresholds in their order; it is for more levels.

**Work** is scratch that no move leaves anything in: ``lines[k]`` the base cells, values and present cells of
up to two lines, ``sums[k]`` their sums over the data, ``joint`` the base cells, shifts and present cells of
the three variables of a swap, ``noise`` the two variances of a decision.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from edgewise.kernels.codes import INCLUSION_RATE, MODEL_STATE, SLAB_SCALE
from edgewise.kernels.compiling import answer, kernel, question

Rules = namedtuple("Rules", "centres clique_centres levels scores pair_index prior")
Sums = namedtuple("Sums", "rows singles cliques")
Chain = namedtuple("Chain", "theta bias hyper graph stream tallies counters")
Rivals = namedtuple("Rivals", "pairs rate tallies")
Scan = namedtuple("Scan", "hot probability is_hot cold_flips cold_moves swaps rivals")
FullScan = namedtuple("FullScan", "hot probability swaps")
LineScan = namedtuple("LineScan", "hot probability is_hot cold_flips cold_moves lines")
Work = namedtuple("Work", "lines sums joint noise")
Recorder = namedtuple("Recorder", "indptr indices values biases inclusion_rate slab_scale model_state filled")
# One for matrices too: those of the active candidates of each draw, and where each draw's begin; `own` is
# where those of a candidate lie in the chain, `size` how many parameters it has.
BlockRecorder = namedtuple(
    "BlockRecorder",
    "indptr indices values biases inclusion_rate slab_scale model_state filled block_indptr blocks own size",
)


def working_space(levels: np.ndarray, strata: int = 1) -> Work:
    """Room for the lines of any two, and the joint cells of any three, of the variables."""
    widest = np.sort(levels)[::-1].astype(int)
    pair = int(np.prod(widest[:2])) if len(widest) else 1
    triple = int(np.prod(widest[:3])) if len(widest) else 1
    return Work(
        lines=np.zeros((2, 3, strata, max(pair, 2))),
        sums=np.zeros((2, strata)),
        joint=np.zeros((3, strata, max(triple, 2))),
        noise=np.zeros(2),
    )


def empty_recorder(draws: int, entries: int, n_variables: int, model_size: int = 0) -> Recorder:
    """Room for some draws that together have `entries` active candidates.

    `model_size` is how many numbers a model of inclusion keeps of each.
    """
    return Recorder(
        indptr=np.zeros(draws + 1, np.int64),
        indices=np.empty(entries, np.int32),
        values=np.empty(entries),
        biases=np.empty((draws, n_variables)),
        inclusion_rate=np.empty(draws),
        slab_scale=np.empty(draws),
        model_state=np.empty((draws, model_size)),
        filled=np.zeros(1, np.int64),
    )


@kernel
def planes(space, count):
    """Planes of ``Work.lines[k]`` or of ``Work.joint`` in their order, for lines of `count` cells."""
    return space[0, :, :count], space[1, :, :count], space[2, :, :count]


@question
def room_left(recorder, active):
    """Whether one more draw with so many active candidates fits into the recorder."""


@answer(room_left, Recorder)
def _room_for_values(recorder, active):
    return room_for_values(recorder, active)


@answer(room_left, BlockRecorder)
def _room_for_blocks(recorder, active):
    last = recorder.own.shape[0] - 1
    end = recorder.block_indptr[recorder.filled[0]] + recorder.own[last]
    return end <= recorder.blocks.shape[0] and room_for_values(recorder, active)


@kernel
def room_for_values(recorder, active):
    """Whether it does but for matrices."""
    filled = recorder.filled[0]
    return filled < recorder.biases.shape[0] and recorder.indptr[filled] + active <= recorder.indices.shape[0]


@question
def record(recorder, chain):
    """Keep the present state as a draw; its active candidates in no particular order."""


@answer(record, Recorder)
def _record_values(recorder, chain):
    record_values(recorder, chain)


@answer(record, BlockRecorder)
def _record_blocks(recorder, chain):
    draw = recorder.filled[0]
    record_values(recorder, chain)
    end = recorder.block_indptr[draw]
    for position in range(recorder.indptr[draw], recorder.indptr[draw + 1]):
        a = recorder.indices[position]
        if recorder.size[a] > 1:
            for q in range(recorder.size[a]):
                recorder.blocks[end + q] = chain.blocks[recorder.own[a] + q]
            end += recorder.size[a]
    recorder.block_indptr[draw + 1] = end


@kernel
def record_values(recorder, chain):
    """Keep all of it but for matrices."""
    filled = recorder.filled[0]
    begin = recorder.indptr[filled]
    count = chain.graph.counts[0]
    for k in range(count):
        recorder.indices[begin + k] = chain.graph.listed[k]
        recorder.values[begin + k] = chain.theta[chain.graph.listed[k]]
    for i in range(chain.bias.shape[0]):
        recorder.biases[filled, i] = chain.bias[i]
    recorder.inclusion_rate[filled] = chain.hyper[INCLUSION_RATE]
    recorder.slab_scale[filled] = chain.hyper[SLAB_SCALE]
    for k in range(recorder.model_state.shape[1]):
        recorder.model_state[filled, k] = chain.hyper[MODEL_STATE + k]
    recorder.indptr[filled + 1] = begin + count
    recorder.filled[0] = filled + 1
