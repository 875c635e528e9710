"""The pages: docs/calibration.md and docs/pseudo-likelihood.md, from what has been computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.calibration import kinds, lattices, levels, pictures, triples, wrong
from benchmarks.calibration.pictures import BINS, Found, interval, reliability
from benchmarks.calibration.worlds import DRAWS, KEPT, METHODS, NOWHERE, PSEUDO, QUANTITIES, WORLDS, gathered
from benchmarks.chains_of_draws import table_of
from edgewise.atomic import replacing

DOCS = Path(__file__).parents[2] / "docs"
LEVELS = (0.5, 0.9, 0.95)
ENGINES = METHODS[:2]


def share(hits: float, count: float, digits: int = 2) -> str:
    """A share with its 95 % interval."""
    if not count:
        return "-"
    low, high = interval(hits, count)
    return f"{hits / count:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def covered(places: np.ndarray, level: float) -> tuple[int, int]:
    """How many true values lie in the central interval, and of how many."""
    known = places[places != NOWHERE].astype(float) / 1000
    return int((np.abs(known - 0.5) <= level / 2).sum()), len(known)


def rank_table(found: Found, methods: tuple[str, ...]) -> str:
    """The quantities whose curve of ranks leaves its band."""
    rows = []
    for (world, method), part in found.items():
        if method in methods:
            left = [
                q
                for k, q in enumerate(QUANTITIES[: part["ranks"].shape[1]])
                if pictures.outside(part["ranks"][:, k])
            ]
            least = np.median(part["effective"], axis=0).min()
            rows.append([world.title, method, len(part["ranks"]), ", ".join(left) or "none", f"{least:.0f}"])
    return table_of(["data", "method", "data sets", "curves outside the band", "effective draws"], rows)


def reliability_table(found: Found, methods: tuple[str, ...]) -> str:
    """Shares in ten bins."""
    bins = [f".{b}-{'1' if b == BINS - 1 else f'.{b + 1}'}" for b in range(BINS)]
    rows = []
    for (world, method), part in found.items():
        if method in methods:
            cells = [share(hits, count) for _, hits, count in reliability(part)]
            rows.append([world.title, method, *cells])
    return table_of(["data", "method", *bins], rows)


def coverage_table(found: Found, methods: tuple[str, ...]) -> str:
    """Coverage of central intervals."""
    rows = []
    for (world, method), part in found.items():
        if method in methods:
            cells = [
                share(*covered(part[key], level), 3)
                for key in ("coupling_place", "bias_place")
                for level in LEVELS
            ]
            rows.append([world.title, method, *cells])
    heads = [f"{what} {level:.0%}" for what in ("couplings", "biases") for level in LEVELS]
    return table_of(["data", "method", *heads], rows)


def wrong_table() -> str:
    """What is left of the promises when the model is wrong."""
    rows = []
    for case, found in wrong.results().items():
        rows.append([case, *(share(*found[name]) for name in found)])
    return table_of(
        [
            "data",
            "of those stated .5-.9 there",
            "of those stated .9-1 there",
            "95 % intervals hold",
            "absent edges above .5",
            "affected absent edges above .5",
        ],
        rows,
    )


def lattice_tables() -> tuple[str, str]:
    """Edges and couplings beside the lassos, and reliability of the engine's probabilities."""
    scores, bins = [], []
    heads = [f".{b}-{'1' if b == BINS - 1 else f'.{b + 1}'}" for b in range(BINS)]
    for (count, method), parts in lattices.results().items():
        means = [float(np.mean([part[name] for part in parts])) for name in lattices.KEPT]
        scores.append([count, method, len(parts), *(f"{mean:.3f}" for mean in means[1:])])
        if method == lattices.ENGINE:
            there, among = (np.sum([part[key] for part in parts], axis=0) for key in ("there", "among"))
            bins.append([count, *(share(hits, number) for hits, number in zip(there, among))])
    return (
        table_of(["N", "method", "data sets", "precision", "recall", "F1", "error of couplings"], scores),
        table_of(["N", *heads], bins),
    )


def triples_table() -> str:
    """Both engines on all triples of nine variables."""
    rows = []
    for found in triples.results():
        ours, theirs = found["exact"], found["particle"]
        rows.append(
            [
                f"{ours['milliseconds']:.2f}",
                f"{theirs['milliseconds']:.1f}",
                f"{theirs['particles']:,.0f}",
                *(" to ".join(f"{count:.1f}" for count in part["edges"]) for part in (ours, theirs)),
                f"{found['rms']:.3f}",
                f"{found['error']:.3f}",
                f"{found['z_rms']:.2f}",
            ]
        )
    return table_of(
        [
            *("ms, exact", "ms, particle", "particles", "cliques in each half, exact", "particle"),
            *("difference of probabilities, rms", "its Monte Carlo error", "rms of z"),
        ],
        rows,
    )


def calibration(found: Found) -> str:
    """The page of the engines."""
    cpu = sum(float(part["seconds"].sum()) for part in found.values())
    beside, bins = lattice_tables()
    wide = len(found[WORLDS[4], "particle"]["ranks"])
    short = gathered("short-particle", WORLDS[4])
    held, known = covered(short["bias_place"], 0.95) if short else (0, 1)
    curves = [
        pictures.outside(part["ranks"][:, k])
        for (_, method), part in found.items()
        for k in range(part["ranks"].shape[1])
        if method in ENGINES
    ]
    return f"""# Calibration

A stated probability is a promise: of the edges given .7, seven in ten should be there, and a 95 % interval should hold
the true value 19 times in 20. Here the promise is checked where the truth is known. Models are drawn from the prior,
data from the models, and the posterior of each data set is computed by the `exact` and the `particle` engine; then the
truth is compared with it. Everything is of the default prior (p0 ~ Beta(5, 5), sigma0^-2 ~ Gamma(5, 5)) but for the biases,
which are from N(0, 1) so that most columns vary; *wide biases* are the default N(0, 10^2), with which many columns are
nearly constant and say little. How many data sets there are stands in the first table; they took {cpu:,.0f} CPU seconds.
The last rows of each table are of other tables. First come five variables with two to four levels (two ordinal, one nominal, one Blume-Capel, one binary),
by the `exact` engine; their couplings are the strengths of matrices where a pair has several parameters, and their biases
the thresholds. Then tables of which a fifth of the cells is blank and drawn in the chain. Last two groups that are compared, by `exact`: ranks are those of the first
group, and to the edges that are there the table of reliability adds the differences, to the couplings that of coverage by how much the groups differ.

`python -m benchmarks.calibration` goes on from what is stored and writes this page anew.

## Ranks of true values

If draws come from the posterior, the rank of the true value among {KEPT} of them is uniform. The curves show how the share of
data sets with a rank up to each point differs from that; the grey band holds the whole curve of a calibrated method in
95 of 100 cases. *Indicator*, *coupling* and *bias* are those of the first pair and the first variable; *log likelihood* is that of the
data, which notices a posterior that forgot them. Red is the pseudo-likelihood, which has [a page of its
own](pseudo-likelihood.md).

![Ranks of true values](images/calibration-ranks.png)

Of {len(curves)} curves of the two engines {sum(curves)} leave their band; about {0.05 * len(curves):.1f} would by chance. *Effective draws* is the
median over data sets for the slowest of the quantities, of {DRAWS} draws.

{rank_table(found, ENGINES)}

## Reliability of inclusion probabilities

Of the edges with a probability in each tenth, the share that is there, with its 95 % interval. Edges of one data set are not
independent, so that the intervals are somewhat too short.

![Reliability](images/calibration-reliability.png)

{reliability_table(found, ENGINES)}

## Coverage of intervals

How often central intervals hold the true value: of couplings that are there and in at least a tenth of the draws, and of
biases.

{coverage_table(found, ENGINES)}

With wide biases columns hardly vary and their biases may be anything beyond some value, which a chain takes long to walk
through. {wide} data sets have the particle engine there, with six times the iterations of the other rows: with as few as
those have, its 95 % intervals of biases held {held / known:.3f} of the true values of the first {len(short["ranks"]) if short else 0}.

## Engine and simulator in turns

Geweke's joint test asks the same in another way: data are drawn from the parameters, the engine moves the parameters given these
data, and so on, without ever waiting for convergence. Parameters and data must then have the distribution that prior and
model give them together. `tests/statistical/test_joint.py` does it for `exact` (table of states and elimination),
`particle` and `langevin` with small steps; in each a twentieth of the pair sums lost, or prior odds a
quarter too high, is noticed. `surrogate` takes its word for the likelihood and claims no posterior, so it is not tested.

## When the model is wrong

No probability is better than the model behind it. Eight variables, {wrong.ROWS} rows, {wrong.DATA_SETS} data sets each, exact engine. Edges
count as there if the model has them that the data began with. *Affected* are the pairs of the variables that the hidden
cause drives, elsewhere the first pair.

{wrong_table()}

- **A hidden common cause** makes its children depend on each other, and edges between them are found: they are really in the
  distribution of what was measured, but they are not influences. Only measuring the cause, or knowing of it, helps.
- **Rows that are not independent** (several answers of a person, neighbouring days) are counted as so many rows, and
  everything becomes too sure: half of all absent edges are reported, intervals hold seven in ten. Give
  each row a weight of one over its number of copies, and the promises hold again.
- **Rows chosen by what they answer** make edges between the variables that decided (*affected*: always). Survey
  weights remove these, but weights that sum to the number of rows overstate what is known: scale them to the effective number of
  rows, (sum w)^2 / sum w^2, before the fit.

## Lattices beside the lassos

Lattices of 10 x 10 variables with couplings as in the paper: 180 of 4,950 pairs are edges, far fewer than the default prior
expects, and nothing is drawn from it. One chain of the `particle` engine has {lattices.CPU_SECONDS:.0f} CPU seconds for each data set;
the lasso of the pseudo-likelihood was told the best penalty by the truth. Edges are those above .5; couplings are means.

{beside}

Of the pairs with a probability in each tenth, the share that is there:

{bins}

## Larger cliques

All pairs and triples of 9 variables, 120 candidates, {triples.ROWS:,} rows of a model with some of each. An iteration costs the
particle engine about 300 times as much as the exact one: noise in its decisions grows with the rows, so that it keeps its limit
of ten particles per row, 15,040, where all states together are 512, and every one is brought up to date after every move. What it draws agrees with
the exact engine within Monte Carlo error once its chain has arrived, which takes thousands of iterations; with a tenth of
these the number of cliques still drifts. `auto` takes `exact` for such tables.

{triples_table()}

## What else is checked elsewhere

The `particle` engine with levels, imputed cells (reliability of the probabilities of their levels) and the three states of a pair in two groups are calibrated in
the tests (`tests/statistical`), each with a negative control that is noticed. What blanks do to the answers of real tables is measured in [Tables with blanks](howto/missing.md).
"""


def misleading(found: Found) -> str:
    """The page of the pseudo-likelihood."""
    worst = []
    for world in WORLDS[:4]:
        for method in ("exact", PSEUDO):
            part = found[world, method]
            cells = reliability(part)
            bold = [cells[b] for b in (7, 8)]
            stated = sum(mean * count for mean, _, count in bold) / sum(count for *_, count in bold)
            hits, count = sum(c[1] for c in bold), sum(c[2] for c in bold)
            sure = (part["active"] >= 0.9 * DRAWS) & (part["coupling_place"] != NOWHERE)
            worst.append(
                [
                    *(world.title, method, len(part["ranks"]), f"{stated:.2f}", share(hits, count)),
                    share(cells[9][1], cells[9][2]),
                    share(*covered(part["coupling_place"], 0.95)),
                    share(*covered(part["coupling_place"][sure], 0.95)),
                ]
            )
    table = table_of(
        [
            *("data", "method", "data sets", "stated, of .7-.9", "there, of .7-.9", "there, of .9-1"),
            *("95 % intervals hold", "those of edges above .9"),
        ],
        worst,
    )
    return f"""# When pseudo-likelihood misleads

Most software for networks of binary variables replaces the likelihood by the pseudo-likelihood: the product, over the
variables, of the probability of each given all others. It needs no normalising constant and is fast, and as a way to *estimate* it
is sound. As a *likelihood in a posterior* it is not: every row is counted once for each variable, every dependence is seen from both
of its ends, and the posterior becomes too sure. Edges that are not there get high probabilities, and intervals are too short.

Here are both on the same data: models drawn from the prior, data from the models, the same prior for both
([calibration](calibration.md) tells how). `exact` is edgewise with the true likelihood; *pseudo-likelihood* is a
chain of our own for the other posterior (`benchmarks/pseudo_posterior.py`, tested against quadrature), not of any package.

{table}

With the true likelihood what is stated is what is there. With the pseudo-likelihood edges stated as .7 to .9
are there in 55 to 60 of 100 cases, of those stated above .9 one in five to ten is not there, and 95 % intervals
miss far more than one true value in twenty. More rows do not cure it: the error is not one of sample size.

![Reliability](images/calibration-reliability.png)

All bins, and intervals of other levels:

{reliability_table(found, METHODS[2:])}

{coverage_table(found, METHODS[2:])}

What to do: with edgewise nothing, its engines use the true likelihood at every size. With a posterior from elsewhere,
read probabilities between .5 and .9 as *no evidence*, and intervals as narrower than they should be. Penalised estimates
(the lassos of [baselines](baselines.md)) use the pseudo-likelihood too, but promise no probabilities.
"""


def everything() -> Found:
    """What has been computed so far."""
    return {
        (world, method): part
        for world, methods in (
            *((world, METHODS) for world in WORLDS),
            *((world, (levels.METHOD,)) for world in levels.WORLDS),
            *((world, kinds.methods_of(world)) for world in kinds.WORLDS),
        )
        for method in methods
        if (part := gathered(method, world)) is not None
    }


def texts() -> dict[str, str]:
    """Both pages, by name; they hold no more than what is stored."""
    found = everything()
    return {"calibration": calibration(found), "pseudo-likelihood": misleading(found)}


def write() -> None:
    """Both pages and their pictures."""
    found = everything()
    pictures.draw_ranks(found, WORLDS, DOCS / "images" / "calibration-ranks.png")
    pictures.draw_reliability(found, WORLDS, DOCS / "images" / "calibration-reliability.png")
    for name, text in texts().items():
        with replacing(DOCS / f"{name}.md", "utf-8") as file:
            file.write(text)
