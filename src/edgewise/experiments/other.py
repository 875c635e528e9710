"""Claims without a figure: other training sizes and priors, leapfrog steps, ratios of jumps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgewise.experiments import dynamics
from edgewise.experiments.drawing import STYLES, curves, focus, legend, new_figure
from edgewise.experiments.runner import Task
from edgewise.experiments.study import Results, Study, Tables, score_table
from edgewise.plots.style import CYCLE, LINE_STYLES, MARKERS, NEUTRAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Training sizes, priors, the leapfrog step and the ratio of a jump"
PARAMETERS = ("a", "b", "c", "d")
DEFAULT = 5.0
# There are many sizes and sets: their table has what the comparison needs, and no more.
SIZE_COLUMNS = ["kind", "rows", "replicate", "method", "p0", "lam", "density", "cll"]
METHODS = ("Bayes p0", "Bayes PM p0", "Wain Max", "MLE", "Bayes", "Bayes PM")


def _priors(study: Study) -> list[tuple[str, float, Task]]:
    found = []
    rows = study.profile.rows
    sets = [("block", replicate) for replicate in range(study.profile.prior_replicates)] + [("lattice", 0)]
    for kind, replicate in sets:
        found.append(("a", DEFAULT, study.bayes(kind, rows, replicate, None)))
        for name in PARAMETERS:
            for value in study.profile.prior_values:
                task = study.bayes(
                    kind, rows, replicate, None, prior={name: value}, label=f"-{name}{value:g}"
                )
                found.append((name, value, task))
    return found


def _sizes(study: Study) -> list[Task]:
    found = []
    for rows in study.profile.sizes:
        found += study.comparison("block", rows, range(study.profile.size_replicates))
    return found


def _lattice_sizes(study: Study) -> list[Task]:
    """The lattice with the learned p0 and the paths alone: what a user would run."""
    found = []
    for rows in study.profile.sizes:
        for replicate in range(study.profile.size_replicates):
            found.append(study.bayes("lattice", rows, replicate, None))
            found += [study.lasso("lattice", rows, replicate, method) for method in ("Wain", "MLE")]
    return found


def tasks(study: Study) -> list[Task]:
    """All of them."""
    return [
        dynamics.leapfrog_task(study.profile, study.seed),
        *(task for _, _, task in _priors(study)),
        *_sizes(study),
        *_lattice_sizes(study),
    ]


def tables(study: Study, results: Results) -> Tables:
    """Rejection rates, estimated ratios, scores under other priors, and scores by training size."""
    import pandas

    found: Tables = {"other_ratios": pandas.DataFrame(dynamics.jump_ratios(study.seed))}
    leapfrog = results.get(dynamics.leapfrog_task(study.profile, study.seed).key)
    if leapfrog is not None:
        found["other_leapfrog"] = pandas.DataFrame(leapfrog.values["table"])
    parts = []
    for name, value, task in _priors(study):
        table = score_table([task], results)
        if not table.empty:
            parts.append(table.assign(parameter=name, value=value, default=value == DEFAULT))
    if parts:
        found["other_priors"] = pandas.concat(parts, ignore_index=True).round(6)
    sizes = score_table([*_sizes(study), *_lattice_sizes(study)], results)
    if not sizes.empty:
        found["other_sizes"] = sizes.loc[sizes["method"].isin(METHODS), SIZE_COLUMNS].round(5)
    return found


def draw(tables: Tables) -> Figure:
    """Steps and jumps, priors, and one panel for each training size other than the main one."""
    sizes = tables.get("other_sizes")
    panels = sorted(set(sizes["rows"]) - {100}) if sizes is not None else []
    figure, axes = new_figure(10.5, 10.2, 3, 3)
    _draw_leapfrog(axes[0, 0], tables)
    _draw_ratios(axes[0, 1], tables)
    _draw_priors(axes[0, 2], tables, "cll")
    _draw_priors(axes[1, 0], tables, "density")
    _draw_lattice(axes[2, 2], tables)
    places = [axes[1, 1], axes[1, 2], axes[2, 0], axes[2, 1]]
    for ax, rows in zip(places, panels):
        assert sizes is not None
        part = sizes[(sizes["rows"] == rows) & (sizes["kind"] == "block")]
        curves(ax, part, METHODS)
        focus(ax, part, METHODS)
        ax.set_title(f"block, {rows:,} training rows", fontsize=10)
        ax.set_ylabel("cond. log-likelihood per case")
    for ax in places[len(panels) :]:
        ax.set_axis_off()
    legend(figure, places, 6)
    return figure


def _draw_leapfrog(ax: Axes, tables: Tables) -> None:
    ax.set_title("Rejections of one leapfrog step", fontsize=10)
    ax.set_xlabel("step eps (posterior sds)")
    ax.set_ylabel("rejection rate")
    if "other_leapfrog" not in tables:
        return
    table = tables["other_leapfrog"]
    ax.errorbar(
        table["step"],
        table["rejection"],
        2 * table["standard_error"],
        color=CYCLE[0],
        marker="o",
        capsize=3,
        label="measured",
    )
    first = table.iloc[len(table) // 3]
    ax.plot(
        table["step"],
        first["rejection"] * (table["step"] / first["step"]) ** 3,
        color=NEUTRAL,
        linestyle="--",
        label="eps³",
    )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(list(table["step"]), [f"{step:g}" for step in table["step"]])
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=8)


def _draw_ratios(ax: Axes, tables: Tables) -> None:
    ax.set_title("Estimated ratio of a jump", fontsize=10)
    ax.set_xlabel("jump (posterior sds)")
    ax.set_ylabel("relative to the true ratio")
    table = tables["other_ratios"]
    rows, particles = dynamics.RATIOS[0]
    table = table[(table["rows"] == rows) & (table["particles"] == particles)]
    curves_shown = (
        ("sd, formula", table["variance_formula"] ** 0.5),
        ("sd", table["variance"] ** 0.5),
        ("bias, not corrected", table["bias_plain"]),
        ("bias", table["bias"]),
    )
    for k, (label, values) in enumerate(curves_shown):
        ax.plot(
            table["jump"], values, color=CYCLE[k], marker=MARKERS[k], linestyle=LINE_STYLES[k], label=label
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(list(table["jump"]), [f"{jump:g}" for jump in table["jump"]])
    ax.minorticks_off()
    ax.set_ylim(bottom=1e-10)
    ax.legend(frameon=False, fontsize=8, loc="lower right")


def _draw_lattice(ax: Axes, tables: Tables) -> None:
    """Best score of each path, which only the test rows know, against learned p0."""
    ax.set_title("lattice: Bayes and the best of each path", fontsize=10)
    ax.set_xlabel("training rows")
    ax.set_ylabel("cond. log-likelihood per case")
    table = tables.get("other_sizes")
    if table is None or not (table["kind"] == "lattice").any():
        return
    table = table[table["kind"] == "lattice"]
    for method in ("Bayes", "Wain Max", "MLE"):
        colour, marker, _ = STYLES[method]
        tops = table[table["method"] == method].groupby(["rows", "replicate"])["cll"].max()
        if tops.empty:
            continue
        groups = tops.groupby("rows")
        mean, spread = groups.mean(), groups.std(ddof=0)
        ax.errorbar(
            mean.index.to_numpy(),
            mean,
            spread,
            color=colour,
            marker=marker,
            capsize=3,
            label=method,
        )
    ax.set_xscale("log")
    sizes = sorted(table["rows"].unique())
    ax.set_xticks(sizes, [f"{rows:,}" for rows in sizes])
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=8, loc="lower right")


def _draw_priors(ax: Axes, tables: Tables, column: str) -> None:
    score = column == "cll"
    ax.set_title(f"{'Score' if score else 'Density'} under other priors, block", fontsize=10)
    ax.set_xlabel("value of a, b, c or d (others 5)")
    ax.set_ylabel("cond. log-likelihood per case" if score else "edge density (share of all pairs)")
    if "other_priors" not in tables:
        return
    table = tables["other_priors"]
    table = table[(table["method"] == "Bayes") & (table["kind"] == "block")]
    default = table.loc[table["default"], column].mean()
    for k, name in enumerate(PARAMETERS):
        part = table[(table["parameter"] == name) & ~table["default"]].groupby("value")[column].mean()
        values = {float(str(value)): float(score) for value, score in part.items()}
        curve = dict(sorted({**values, DEFAULT: float(default)}.items()))
        ax.plot(
            list(curve),
            list(curve.values()),
            color=CYCLE[k],
            marker=MARKERS[k],
            linestyle=LINE_STYLES[k],
            label=name,
        )
    ax.set_xscale("log")
    ax.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    ax.minorticks_off()
    low, high = ax.get_ylim()
    ax.set_ylim(*((min(low, default - 0.3), max(high, default + 0.3)) if score else (0.0, 1.0)))
    ax.legend(frameon=False, fontsize=8, ncols=4)
