"""The verdicts on the paper's claims follow from tables, made-up ones here."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from edgewise.experiments import claims
from edgewise.experiments.claims import FAILS, HOLDS, PARTLY, UNKNOWN, judge_all
from edgewise.experiments.dynamics import MEASURED, jump_ratios, ratio_errors


def verdict(name: str, tables: dict[str, pandas.DataFrame]) -> str:
    return {each.claim.name: each.verdict for each in judge_all(tables)}[name]


def test_nothing_is_claimed_without_tables():
    assert {each.verdict for each in judge_all({})} == {UNKNOWN}


@pytest.mark.parametrize(("power", "expected"), [(3.0, HOLDS), (2.3, PARTLY), (1.0, FAILS)])
def test_eps_cubed(power: float, expected: str):
    step = np.array([0.05, 0.1, 0.2])
    table = pandas.DataFrame({"step": step, "rejection": step**power, "standard_error": 0.0})
    assert verdict("eps cubed", {"other_leapfrog": table}) == expected


def momentum(ess: float, shift: float, scale: float) -> pandas.DataFrame:
    rows = []
    for alpha in (0.0, 0.9):
        for edge in range(10):
            moved = alpha > 0
            rows.append(
                {
                    "step": MEASURED,
                    "alpha": alpha,
                    "edge": edge,
                    "mean": edge + shift * moved,
                    "sd": scale if moved else 1.0,
                    "ess": ess if moved else 100.0,
                }
            )
    return pandas.DataFrame(rows)


@pytest.mark.parametrize(
    ("ess", "shift", "scale", "mixes", "stays"),
    [
        (1900, 0.05, 1.01, HOLDS, HOLDS),
        (140, 0.25, 1.0, PARTLY, PARTLY),
        (90, 0.05, 1.5, FAILS, FAILS),
        (1900, 0.0, 1.14, HOLDS, PARTLY),
        (1900, 2.0, 1.0, HOLDS, FAILS),
    ],
)
def test_momentum(ess: float, shift: float, scale: float, mixes: str, stays: str):
    tables = {"fig2": momentum(ess, shift, scale)}
    assert verdict("momentum mixes", tables) == mixes
    assert verdict("momentum leaves the posterior", tables) == stays


def test_too_much_momentum_is_judged_at_both_steps():
    def corners(wild: float, slow: float) -> dict[str, pandas.DataFrame]:
        rows = [(0.3, 0.0, 1.0), (0.3, 0.99, wild), (0.01, 0.99, slow)]
        return {"fig2_errors": pandas.DataFrame(rows, columns=["step", "alpha", "sd_ratio"])}

    assert verdict("too much momentum", corners(1e4, 1.0)) == HOLDS
    assert verdict("too much momentum", corners(1e4, 100.0)) == PARTLY
    assert verdict("too much momentum", corners(1.0, 1.0)) == PARTLY
    assert verdict("too much momentum", corners(1.0, 2.0)) == FAILS


def test_ratios_of_jumps_agree_with_simulated_particles():
    """Sums over the binomial against particles that were really drawn (eqs. 9-11)."""
    mean, rows, particles, times = 0.3, 30, 12, 400_000
    found = ratio_errors(np.array([mean]), rows, particles, 0.5)
    features = np.random.default_rng(1).random((times, particles)) < mean
    average, spread = features.mean(axis=1), features.var(axis=1, ddof=1)
    bias, variance, errors = [], [], []
    for a in (0.05 / np.sqrt(mean * (1 - mean)), -0.05 / np.sqrt(mean * (1 - mean))):
        estimate = np.exp(-rows * a * average - rows * a**2 / 2 * spread)
        estimate /= 1 + rows**2 * a**2 / (2 * particles) * spread
        relative = estimate * (1 - mean + mean * np.exp(a)) ** rows
        bias.append(abs(relative.mean() - 1))
        errors.append(relative.std() / np.sqrt(times))
        variance.append(relative.var())
    assert abs(np.mean(bias) - found["bias"]) < 4 * np.mean(errors)
    assert np.isclose(np.mean(variance), found["variance"], rtol=0.03)
    assert found["bias"] < found["bias_plain"] / 2


def test_claims_about_the_ratio_of_a_jump():
    table = pandas.DataFrame(jump_ratios(1))
    names = ("unbiased ratio", "variance of the ratio", "negligible error of acceptance")
    assert {verdict(name, {"other_ratios": table}) for name in names} == {HOLDS}
    wrong = table.assign(bias=table["bias_plain"], variance=2 * table["variance"], acceptance_error=0.2)
    assert [verdict(name, {"other_ratios": wrong}) for name in names] == [FAILS, PARTLY, FAILS]


def scores(bayes: float, dense_loss: float = 1.0, kinds: tuple[str, ...] = ("block", "lattice")):
    """Made-up scores: L1 peaks at density 0.5 with -6, Bayes p0 is `bayes` above a flat -6."""
    rows = []
    for kind in kinds:
        for replicate in (0, 1):
            common = {"kind": kind, "rows": 100, "replicate": replicate}
            for density in np.linspace(0, 1, 11):
                loss = 4 * (density - 0.5) ** 2 * (dense_loss if density > 0.5 else 1.0)
                for method, extra in (("Wain Max", 0.1), ("Wain Min", 0.2), ("MLE", 0.0)):
                    cll = -6 - loss - extra
                    rows.append(
                        common | {"method": method, "lam": 1 - density, "density": density, "cll": cll}
                    )
            for p0 in (0.1, 0.3, 0.6):
                cll = -6 + bayes - (p0 - 0.3) ** 2
                fixed = {"method": "Bayes p0", "p0": p0, "density": p0, "cll": cll, "sigma0": 1 - p0}
                rows.append(common | fixed | {"true_edge_size": 1 - p0})
            learned = {"cll": -6, "sigma0": 1.0, "true_edge_size": 0.9}
            rows.append(common | learned | {"method": "Bayes", "density": 0.3, "density_sd": 0.01})
            rows.append(common | learned | {"method": "Bayes PM", "density": 0.35})
    truth = pandas.DataFrame({"kind": list(kinds), "density": 0.3})
    return {"fig6": pandas.DataFrame(rows), "fig6_truth": truth}


def test_bayes_against_paths():
    ahead, behind = scores(0.5), scores(-3.0)
    assert verdict("Bayes p0 ahead", ahead) == HOLDS
    assert verdict("Bayes p0 ahead", behind) == FAILS
    block = ahead["fig6"][ahead["fig6"]["kind"] == "block"]
    assert claims.wins(block) == (12, 12, 0)
    short = block[(block["density"] < 0.55) | (block["method"] == "Bayes p0")]
    assert claims.wins(short).words == "12 of 12 (4 of them past the end of a path)"
    assert verdict("robust", ahead) == UNKNOWN
    median = ahead["fig6"][ahead["fig6"]["method"] == "Bayes p0"].assign(method="Bayes PM p0")
    whole = pandas.concat([ahead["fig6"], median], ignore_index=True)
    assert verdict("robust", {"fig6": whole}) == HOLDS
    whole.loc[whole["method"] == "Bayes PM p0", "cll"] *= whole["p0"] + 0.5
    assert verdict("robust", {"fig6": whole}) == PARTLY
    assert verdict("Bayes p0 ahead", scores(0.5, kinds=("block",))) == UNKNOWN
    mixed = scores(0.5)
    table = mixed["fig6"]
    worse = (table["kind"] == "lattice") & (table["method"] == "Bayes p0")
    table.loc[worse, "cll"] -= 5
    assert verdict("Bayes p0 ahead", mixed) == PARTLY


def test_other_sizes_count_both_models():
    def sized(*shifts: float) -> dict[str, pandas.DataFrame]:
        parts = [scores(shift)["fig6"].assign(rows=50 * (k + 1)) for k, shift in enumerate(shifts)]
        return {"other_sizes": pandas.concat(parts)}

    assert verdict("other training sizes", sized(0.5, 0.5)) == HOLDS
    assert verdict("other training sizes", sized(0.5)) == UNKNOWN
    assert verdict("other training sizes", sized(-3.0, -3.0)) == PARTLY
    behind = sized(-3.0, -3.0)
    table = behind["other_sizes"]
    table.loc[table["method"] == "Bayes", "cll"] -= 5
    assert verdict("other training sizes", behind) == FAILS


def test_peak_density_and_paths():
    tables = scores(0.5)
    assert verdict("peak at the true density", tables) == HOLDS
    assert verdict("L1 under- and over-fits", tables) == HOLDS
    assert verdict("L1 under- and over-fits", scores(0.5, dense_loss=0.0)) == PARTLY
    assert verdict("MLE over Wain", tables) == HOLDS
    assert verdict("Wain Max over Wain Min", tables) == HOLDS
    assert verdict("learned density", tables) == HOLDS
    assert verdict("steady density", tables) == HOLDS
    assert verdict("sigma0 falls", tables) == PARTLY
    far = scores(0.5)
    far["fig6_truth"]["density"] = 0.9
    assert verdict("peak at the true density", far) == FAILS
    assert verdict("learned density", far) == FAILS
    far["fig6_truth"]["density"] = 0.25
    assert verdict("learned density", far) == PARTLY


def test_median_models_of_images():
    """At equal densities within the range, and at density 0.2."""

    def images(shift: float) -> dict[str, pandas.DataFrame]:
        table = scores(shift, kinds=("mnist",))["fig6"].replace({"method": {"Bayes p0": "Bayes PM p0"}})
        return {"fig10": pandas.concat([table, table.assign(rows=1000)])}

    assert verdict("images: Bayes PM", images(-3.0)) == HOLDS
    assert verdict("images: Bayes PM", images(0.5)) == FAILS
    mixed = images(-3.0)["fig10"]
    mixed.loc[(mixed["rows"] == 1000) & (mixed["method"] == "Bayes PM p0"), "cll"] += 5
    assert verdict("images: Bayes PM", {"fig10": mixed}) == PARTLY
    for gap, expected in ((-0.1, HOLDS), (0.02, PARTLY), (0.2, FAILS)):
        level = pandas.DataFrame({"method": ["Bayes PM", "MLE"], "cll": [-3.0 + gap, -3.0]})
        assert verdict("images: median model at density 0.2", {"fig11_likeness": level}) == expected


def test_sizes_of_parameters():
    def sizes(sparse: float, dense: float) -> dict[str, pandas.DataFrame]:
        rows = [
            {"target": 0.03, "method": "Wain Max", "size_of_found": sparse, "size_of_false": 0.0},
            {"target": 0.03, "method": "Bayes PM", "size_of_found": 1.0, "size_of_false": 0.0},
            {"target": 0.65, "method": "Wain Max", "size_of_found": 1.0, "size_of_false": dense},
            {"target": 0.65, "method": "Bayes PM", "size_of_found": 1.0, "size_of_false": 0.1},
        ]
        return {"fig8_sizes": pandas.DataFrame(rows)}

    assert verdict("selective shrinkage", sizes(0.4, 0.5)) == HOLDS
    assert verdict("selective shrinkage", sizes(0.9, 0.5)) == PARTLY
    assert verdict("selective shrinkage", sizes(0.9, 0.1)) == FAILS


def test_priors_are_compared_with_the_default_of_the_same_training_set():
    rows = [
        {
            "method": "Bayes",
            "kind": kind,
            "replicate": r,
            "default": d,
            "cll": -6.0 - r + c,
            "density": 0.3,
        }
        for kind in ("block", "lattice")
        for r in (0, 1)
        for d, c in ((True, 0.0), (False, 0.05))
    ]
    table = pandas.DataFrame(rows).assign(parameter="a", value=20.0)

    def both() -> list[str]:
        return [verdict(f"priors: {name}", {"other_priors": table}) for name in ("score", "density")]

    assert both() == [HOLDS, HOLDS]
    assert verdict("priors: score", {"other_priors": table[table["kind"] == "block"]}) == UNKNOWN
    table.loc[~table["default"], "cll"] -= 1.0
    assert both() == [FAILS, HOLDS]
    table.loc[~table["default"] & (table["kind"] == "block"), "density"] += 0.3
    assert both() == [FAILS, PARTLY]
