"""Figure 11: images sampled from models of edge density 0.2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edgewise.experiments.data import case
from edgewise.experiments.drawing import new_figure
from edgewise.experiments.methods import LASSOS, place
from edgewise.experiments.runner import Task
from edgewise.experiments.study import Results, Study, Tables, matched, nearest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Samples of models of edge density 0.2"
DENSITY = 0.2
SHOWN = 36
REAL = "test images"


def _rows(study: Study) -> int:
    return study.profile.mnist_rows[-1]


def _grid(study: Study) -> list[tuple[float, Task]]:
    return [(p0, study.bayes("mnist", _rows(study), 0, p0)) for p0 in study.grid("mnist")]


def _lasso(study: Study, method: str) -> Task:
    return study.lasso(
        "mnist",
        _rows(study),
        0,
        method,
        densities=(DENSITY,),
        generated=study.profile.samples,
        label="-fig11",
    )


def tasks(study: Study) -> list[Task]:
    """Both paths at the density, and the fixed-p0 fits between which the right p0 lies."""
    return [_lasso(study, "Wain"), _lasso(study, "MLE"), *(task for _, task in _grid(study))]


def _fits(study: Study, results: Results) -> dict[str, list[Task]]:
    """Fits whose mixture, or whose median model, should have the density."""

    def fits(method: str, label: str) -> list[Task]:
        def fit(p0: float) -> Task:
            return study.bayes(
                "mnist", _rows(study), 0, p0, label=f"-fig11{label}", generated=study.profile.samples
            )

        return matched(fit, _grid(study), results, DENSITY, method, study.profile.matching_fits)

    return {"Bayes": fits("Bayes", "-mixture"), "Bayes PM": fits("Bayes PM", "-median")}


def follow_up(study: Study, results: Results) -> list[Task]:
    """Fits whose mixture, or whose median model, should have the density."""
    return [task for tasks in _fits(study, results).values() for task in tasks]


def tables(study: Study, results: Results) -> Tables:
    """The images as strings of zeros and ones, and how far they are from real ones."""
    import pandas

    images: dict[str, np.ndarray] = {}
    scores: dict[str, dict[str, float]] = {}
    for method, tried in _fits(study, results).items():
        task = nearest(tried, results, DENSITY, method)
        if task is not None:
            images[method] = results[task.key].arrays[f"samples {method}"]
            scores[method] = results[task.key].values["scores"][method]
    for method in LASSOS:
        result = results.get(_lasso(study, "MLE" if method == "MLE" else "Wain").key)
        label = f"{method} {DENSITY:g}"
        if result is not None and f"samples {label}" in result.arrays:
            images[method] = result.arrays[f"samples {label}"]
            scores[method] = result.values["at"][label]
    if not images:
        return {}
    profile = study.profile
    here = case("mnist", _rows(study), 0, study.seed, **place(profile, "mnist", study.data))
    # Real images are the yardstick; they are measured but not copied into the table. The files have two kinds
    # of writers one after the other, so that halves must be mixed.
    test = here.test[np.random.default_rng([study.seed, 3]).permutation(len(here.test))]
    half = len(test) // 2
    images[REAL] = test[:half][: profile.samples]
    assert here.shape is not None
    pictures, facts = [], []
    for method, rows in images.items():
        for number, row in enumerate([] if method == REAL else rows[:SHOWN]):
            pictures.append(
                {
                    "method": method,
                    "image": number,
                    "shape": f"{here.shape[0]}x{here.shape[1]}",
                    "pixels": "".join(map(str, row.tolist())),
                }
            )
        known: dict[str, Any] = {name: scores.get(method, {}).get(name) for name in ("density", "cll")}
        facts.append({"method": method} | known | likeness(rows, test[half:]))
    return {"fig11": pandas.DataFrame(pictures), "fig11_likeness": pandas.DataFrame(facts).round(6)}


def likeness(rows: np.ndarray, real: np.ndarray) -> dict[str, float]:
    """How far sampled images are from real ones.

    ``nearest``: mean number of pixels in which a sample differs from the real image nearest to it;
    ``pixel_error`` and ``pair_error``: root mean squared error of the frequencies of pixels and of pairs of
    pixels; ``ink``: share of inked pixels.
    """
    one, other = rows.astype(float), real.astype(float)
    distance = one.sum(axis=1)[:, None] + other.sum(axis=1)[None] - 2 * one @ other.T
    upper = np.triu_indices(one.shape[1], 1)
    pairs = (one.T @ one / len(one))[upper] - (other.T @ other / len(other))[upper]
    return {
        "nearest": float(distance.min(axis=1).mean()),
        "pixel_error": float(np.sqrt(np.mean((one.mean(axis=0) - other.mean(axis=0)) ** 2))),
        "pair_error": float(np.sqrt(np.mean(pairs**2))),
        "ink": float(one.mean()),
    }


def draw(tables: Tables) -> Figure:
    """One sheet of images per method."""
    from edgewise.plots import image_sheet

    table, facts = tables["fig11"], tables["fig11_likeness"].set_index("method")
    methods = list(dict.fromkeys(table["method"]))
    columns = 3
    figure, axes = new_figure(9.5, 3.9 * -(-len(methods) // columns), -(-len(methods) // columns), columns)
    for ax, method in zip(axes.ravel(), methods):
        part = table[table["method"] == method]
        height, width = map(int, str(part["shape"].iloc[0]).split("x"))
        rows = np.array([[int(pixel) for pixel in str(pixels)] for pixels in part["pixels"]])
        density = facts.loc[method, "density"]
        image_sheet(rows, (height, width), ax, across=6)
        ax.set_title(f"{method}, density {density:.2f}", fontsize=10)
        ax.set_xlabel("")
    for ax in axes.ravel()[len(methods) :]:
        ax.set_axis_off()
    return figure
