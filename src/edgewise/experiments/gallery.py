"""The page of the reproduction: claims with verdicts, figures, and how it was made."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from edgewise.atomic import replacing
from edgewise.experiments.claims import FAILS, HOLDS, PARTLY, UNKNOWN, Judgement, judge_all
from edgewise.experiments.figures import FIGURES, RUN, figure_module
from edgewise.experiments.methods import DENSE

PUBLISHED_ITERATIONS = 10_000_000
MARKS = {HOLDS: "●", PARTLY: "◐", FAILS: "○", UNKNOWN: "–"}

# What is known about claims that a run may find wanting.
REASONS = {
    "Algorithm 1 equals exact": "With steps of 0.001 posterior sds ten million iterations are worth some ten "
    "independent draws of a parameter (table of Figure 2), and fewer of an indicator.",
    "equal predictions, Algorithm 1": "It mixes too slowly for its length; see Figures 2 and 4.",
    "Algorithm 1 on the lattice": "It mixes too slowly for its length; see Figure 2.",
    "robust": "The median model keeps every edge whose probability passes one half: with p0 fixed high, all "
    "of them, each with its noise, while the mixture averages the noise away.",
    "priors: density": "Beta(20, 5) and Gamma(20, 5) are strong statements against 66 candidates and 100 "
    "rows: the first asks for four edges in five, the second makes weak edges cheap.",
    "upper right corner": "The mixture is there; the median model predicts with one graph only.",
    "images: Bayes PM": "With 1,000 images the median model is as good as a path of equal density or better; "
    "it is weaker only than denser models.",
    "images: median model at density 0.2": "The two differ by a few hundredths of a nat.",
    "learned density": "With N = 100 weak true edges cannot be told from absent ones; the mean over draws "
    "counts them in part, the median model leaves them out.",
    "peak at the true density": "The score is nearly flat around its best density.",
    "steady density": "At small p the number of weak edges is simply uncertain.",
    "MLE over Wain": "Both minimise nearly the same loss; MLE ties the two coefficients of a pair.",
    "Wain Max over Wain Min": "At equal density Wain Min has the smaller penalty, hence less shrinkage; at "
    "an equal penalty the order may differ.",
    "sigma0 falls": "sigma0 has a prior of its own which keeps it from falling further.",
    "images: samples": "The measures are crude: an image with little ink (Wain Min) is near to many others, "
    "and frequencies and distances see blur and noise, not digits.",
}

READING = {
    "fig2": "Langevin dynamics on the true graph of the block model, alpha = 0 against 0.9. At the published "
    "step of 0.001 a parameter changes so slowly (ten million iterations with momentum are worth some ten "
    "independent draws, and fewer without) that its autocorrelation is known only roughly; means and sds are "
    "compared at a step of 0.04. On the right, short chains at larger steps against the exact posterior.",
    "fig3": "The parameter of four edges of the block model, given that the edge is present. They are the "
    "edges whose exact probabilities are nearest to 0.95, 0.75, 0.5 and 0.25.",
    "fig4": "Every edge of the block model under every fixed p0. Means and sds are shown where both engines "
    "have the edge in at least 5 % of their draws.",
    "fig5": "One training set of the lattice. L1 methods and Bayes p0 run over their sparsity parameter; "
    "Bayes Algorithm 1 is the published sampler on the same rows.",
    "fig6": "Mean and standard deviation over training sets of the score on test rows: of all variables of "
    "the block model, and of a random 3 x 3 window given all other variables on the lattice. The models far "
    "below the range shown are in the table. Bayes Algorithm 1 is one run of the published sampler on the "
    "first training set of the lattice. The paper leaves Wain Min out.",
    "fig7": "One training set of the block model.",
    "fig8": "|Parameter| of every pair that is not zero in at least one of the three models, sorted by its "
    "true value, for one training set; what is above the axis is cut. The insets show the true edges alone.",
    "fig9": "Score against F1 of the edges, means over training sets (bars: standard deviations); the upper "
    "right corner is the good one.",
    "fig10": "Score of a random 3 x 3 window of each test image given all other pixels.",
    "fig11": "Thirty-six Gibbs samples of each model; of Bayes, each from a posterior draw.",
    "other": "Rejection rate of one leapfrog step with the exact gradient; bias and standard deviation of "
    "the estimated ratio of a jump (100 rows, 100 particles); score and density of Bayes under other priors; "
    "Figure 6 at other training sizes, and on the lattice the learned p0 against the best model of each "
    "path, chosen with hindsight.",
}


def read_tables(directory: Path) -> dict[str, Any]:
    """All tables of a directory by name."""
    import pandas

    return {
        path.stem: pandas.read_csv(path) for path in sorted(directory.glob("*.csv")) if path.stem != "claims"
    }


def write_claims(directory: Path) -> list[Judgement]:
    """Judge the claims from the tables of a directory and write ``claims.csv`` and ``claims.json``."""
    import pandas

    judgements = judge_all(read_tables(directory))
    rows = [
        {
            "claim": each.claim.name,
            "section": each.claim.section,
            "figure": each.claim.figure,
            "words": each.claim.words,
            "rule": each.claim.rule,
            "measured": each.measured,
            "verdict": each.verdict,
        }
        for each in judgements
    ]
    with replacing(directory / "claims.csv", "utf-8") as file:
        pandas.DataFrame(rows).to_csv(file, index=False, lineterminator="\n")
    with replacing(directory / "claims.json", "utf-8") as file:
        file.write(json.dumps(rows, indent=1) + "\n")
    return judgements


def show_claims(judgements: list[Judgement]) -> None:
    """Print the claims with what was measured."""
    for each in judgements:
        found = each.measured or each.claim.words
        print(f"{each.verdict:14s} {each.claim.section:4s} {each.claim.name}: {found}")


def write_page(directory: Path, page: Path, folder: Path) -> Path:
    """Write the page from the files of a run; `folder` has the figures and tables it points to."""
    state = json.loads((directory / RUN).read_text())
    tables = read_tables(directory)
    judgements = judge_all(tables)
    link = os.path.relpath(folder, page.parent)
    prefix = "" if link == "." else f"{link}/"
    lines = _head(state, judgements)
    lines += _claims(judgements, directory)
    for name in FIGURES:
        lines += _figure(name, directory, prefix)
    lines += _foot(state, tables)
    page.parent.mkdir(parents=True, exist_ok=True)
    with replacing(page, "utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return page


def _head(state: dict[str, Any], judgements: list[Judgement]) -> list[str]:
    counts = {verdict: sum(each.verdict == verdict for each in judgements) for verdict in MARKS}
    words = ", ".join(f"{verdict} {count}" for verdict, count in counts.items() if count)
    complete = state["tasks"] == state["finished"]
    how = (
        f"All {state['tasks']} tasks are finished."
        if complete
        else f"**{state['finished']} of {state['tasks']} tasks are finished**; figures show what there is, "
        "and claims without their tables count as not measured."
    )
    hours = state["processor_seconds"] / 3600
    spent = f"{hours:.1f} hours" if hours >= 1.5 else f"{60 * hours:.0f} minutes"
    small = (
        " This is the small profile: few replicates and short chains, so verdicts near a threshold may "
        "change with `--profile full`."
        if state["profile"] != "full"
        else ""
    )
    return [
        "# Reproduction of the paper",
        "",
        "The experiments of Chen & Welling (2012), *Bayesian structure learning for Markov random fields "
        "with a spike and slab prior*, run again with edgewise. This page is written by the run itself:",
        "",
        *(
            f"    edgewise reproduce {name} --profile {state['profile']} --seed {state['seed']} -o DIR"
            for name in (["all"] if state["figures"] == list(FIGURES) else state["figures"])
        ),
        "",
        f"Profile **{state['profile']}**, seed {state['seed']}. {how} They took {spent} of processor "
        f"time.{small}",
        f"Images: {state['images']}.",
        "",
        "There is one true block model (20 of 66 edges) and one lattice (180 of 4,950 edges); replicates are "
        "different training sets. *Bayes* is a mixture of posterior draws and *Bayes PM* the median model, "
        "both with a learned p0 unless marked *p0*. They are drawn by the particle engine; *Exact* is the "
        "exact engine and *Algorithm 1* the paper's own sampler. Scores are nats per test case.",
        "",
        f"Verdicts on the {len(judgements)} claims: {words}. Each has its rule beside it; some "
        "thresholds were set after first runs had been seen. A claim about several models, methods or sizes "
        "is judged for each: it holds where it holds for all, does not hold where it fails for all, and "
        "holds partly otherwise.",
        "",
    ]


def _unfinished(name: str, directory: Path) -> bool:
    record = directory / f"{name}.json"
    return record.exists() and bool(json.loads(record.read_text())["missing"])


def _claims(judgements: list[Judgement], directory: Path) -> list[str]:
    lines = [
        "## Claims",
        "",
        "| | verdict | section | claim | measured | shown in |",
        "|---|---|---|---|---|---|",
    ]
    for each in judgements:
        known = each.verdict != UNKNOWN
        so_far = " so far" if known and _unfinished(each.claim.figure, directory) else ""
        cells = [
            MARKS[each.verdict],
            f"**{each.verdict}**{so_far}",
            each.claim.section,
            f"{each.claim.words} <br>*Rule:* {each.claim.rule}",
            each.measured + _because(each) or "–",
            f"[{_label(each.claim.figure)}](#{each.claim.figure})",
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return [*lines, ""]


def _because(each: Judgement) -> str:
    """Why a claim may not hold, where there is something to say."""
    reason = REASONS.get(each.claim.name, "")
    return f" <br>*Likely reason:* {reason}" if reason and each.verdict in (PARTLY, FAILS) else ""


def _label(name: str) -> str:
    return name.replace("fig", "Figure ") if name.startswith("fig") else "Other"


def _figure(name: str, directory: Path, prefix: str) -> list[str]:
    module = figure_module(name)
    lines = [f'<a id="{name}"></a>', "", f"## {_label(name)}: {module.TITLE}", ""]
    record = directory / f"{name}.json"
    if not record.exists() or not (directory / f"{name}.png").exists():
        return [*lines, "Not computed yet.", ""]
    found = json.loads(record.read_text())
    tables = ", ".join(f"[{label}.csv]({prefix}{label}.csv)" for label in found["tables"])
    missing = ""
    iterations = found["settings"]["langevin_iterations"]
    if name in ("fig3", "fig4", "fig7") and iterations < PUBLISHED_ITERATIONS:
        missing = (
            f" Algorithm 1 ran {iterations:,} iterations here, the paper's 10 million belong to the full "
            "profile; so short a chain has not forgotten its random start."
        )
    if found["missing"]:
        total = len(found["missing"]) + len(found["tasks"])
        missing += f" **{len(found['missing'])} of its {total} tasks are not finished.**"
    return [
        *lines,
        f"![{module.TITLE}]({prefix}{name}.png)",
        "",
        f"{READING[name]}{missing}",
        f"Tables: {tables}; settings: [{name}.json]({prefix}{name}.json).",
        "",
    ]


def _convergence(tables: dict[str, Any]) -> list[str]:
    """How well the chains with a learned p0 agree, by kind of data and size."""
    words = []
    for name in ("fig6", "fig10"):
        table = tables.get(name)
        if table is None:
            continue
        table = table[table["method"] == "Bayes"].dropna(subset=["r_hat", "ess"])
        for (kind, rows), one in table.groupby(["kind", "rows"]):
            label = "images" if kind == "mnist" else kind
            words.append(f"{label}, {rows} rows: {one['r_hat'].median():.2f} and {one['ess'].median():.0f}")
    if not words:
        return []
    return [
        "* Convergence of the particle engine with a learned p0: largest R-hat and least effective number of "
        f"draws over all uncertain edges and the edge count, median over training sets: {'; '.join(words)}. "
        "The worst of hundreds of edges is a hard test; chains long enough for it (`edgewise fit` goes on "
        "until they are) would take many times as long here. Scores and densities are averages over all "
        "edges, which are known far better.",
    ]


def _foot(state: dict[str, Any], tables: dict[str, Any]) -> list[str]:
    settings = state["settings"]
    versions = ", ".join(f"{name} {value}" for name, value in state["versions"].items())
    return [
        "## How it was made",
        "",
        f"* Training rows of the simulated figures: {settings['rows']}; test rows: {settings['test_rows']:,} "
        f"(simulated), at most {settings['mnist_test_rows']:,} (images).",
        f"* Training sets: block {settings['block_replicates']}, lattice {settings['lattice_replicates']}, "
        f"images {' and '.join(map(str, settings['mnist_replicates']))} (for "
        f"{' and '.join(map(str, settings['mnist_rows']))} rows); other training sizes "
        f"{settings['size_replicates']}, other priors {settings['prior_replicates']}.",
        f"* Particle engine: two chains of {settings['draws']['block']:,} (block), "
        f"{settings['draws']['lattice']:,} (lattice) and {settings['draws']['mnist']:,} (images) kept draws; "
        f"outside the block model {settings['dense_share']:.0%} of that for p0 of {DENSE:g} and more, and "
        f"{settings['fixed_chains']} chain for each fixed p0. The shorter a chain, the noisier its inclusion "
        "probabilities, and the more of them pass one half by chance: at large p0 the median models of "
        "lattice and images are denser than those of longer chains would be. "
        f"The mixtures have {settings['mixture']} draws ({settings['mnist_mixture']} for images).",
        *_convergence(tables),
        f"* Exact engine: two chains of {settings['exact_draws']:,} draws. Algorithm 1: "
        f"{settings['langevin_iterations']:,} iterations on the block model and "
        f"{settings['langevin_lattice']:,} on the lattice, a tenth of them warm-up (the paper: 10 million).",
        f"* L1 paths: {settings['path']} penalties, evenly spaced in the logarithm down to 0.3 % of the "
        "largest.",
        f"* {versions}.",
        "",
        "The same seed gives the same tables. An interrupted run goes on where it stopped.",
    ]
