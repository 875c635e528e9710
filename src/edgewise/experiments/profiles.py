"""How much to compute: smoke (seconds, for tests), quick (minutes) and full (hours)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from edgewise.errors import DataError


@dataclass(frozen=True)
class Profile:
    """Everything that differs between the profiles.

    Attributes
    ----------
    name : str
    p0_block, p0_lattice, p0_mnist : tuple of float
        Fixed inclusion probabilities of the "p0" methods.
    block_replicates, lattice_replicates, mnist_replicates : int
        Training sets of each kind; `mnist_replicates` is one number per entry of `mnist_rows`.
    sizes : tuple of int
        Training sizes of the comparison of sizes; `size_replicates` sets of each.
    mnist_rows : tuple of int
        Training sizes of the image data.
    test_rows, mnist_test_rows : int
        Test rows of simulated and image data (at most; the small image set has fewer).
    draws, warm_up : dict
        Kept draws per chain and warm-up iterations of the particle engine by kind of data.
    dense_share : float
        Share of these draws that a dense model of lattice or images (p0 of 0.5 and more) gets.
    fixed_chains : int
        Chains of the lattice and image fits with a fixed p0; all other particle fits have two.
    exact_draws : int
        Kept draws per chain of the exact engine.
    langevin_iterations, langevin_lattice : int
        Iterations of Algorithm 1 on the block data and on the lattice, warm-up (a tenth) included.
    refreshment_iterations : int
        Iterations of the Langevin dynamics of Figure 2.
    prior_values : tuple of float
        Values of a, b, c and d, each varied alone.
    prior_replicates : int
        Training sets of the block model for which they are varied.
    side : int
        Side of the lattice.
    images : str
        "mnist", or "digits" for scikit-learn's small digits.
    path : int
        Penalties along a lasso path.
    mixture, mnist_mixture : int
        Posterior draws in the mixture "Bayes".
    samples : int
        Generated images that are compared with real ones (36 of them are shown).
    leapfrog_points : int
        Posterior draws from which the leapfrog step is tried.
    rows : int
        Training rows of the figures on simulated data.
    matching_fits : int
        Fits that may be spent on meeting a density in Figures 8 and 11.
    """

    name: str
    p0_block: tuple[float, ...]
    p0_lattice: tuple[float, ...]
    p0_mnist: tuple[float, ...]
    block_replicates: int
    lattice_replicates: int
    mnist_replicates: tuple[int, ...]
    sizes: tuple[int, ...]
    size_replicates: int
    mnist_rows: tuple[int, ...]
    test_rows: int
    mnist_test_rows: int
    draws: dict[str, int]
    warm_up: dict[str, int]
    exact_draws: int
    langevin_iterations: int
    langevin_lattice: int
    refreshment_iterations: int
    prior_values: tuple[float, ...]
    prior_replicates: int
    side: int = 10
    images: str = "mnist"
    path: int = 40
    mixture: int = 100
    mnist_mixture: int = 30
    samples: int = 500
    leapfrog_points: int = 400
    rows: int = 100
    dense_share: float = 0.4
    fixed_chains: int = 1
    matching_fits: int = 2

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the files."""
        return asdict(self)


GRID = (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)

SMOKE = Profile(
    name="smoke",
    p0_block=(0.01, 0.3, 0.9),
    p0_lattice=(0.01, 0.2, 0.9),
    p0_mnist=(0.01, 0.3, 0.5),
    block_replicates=2,
    lattice_replicates=1,
    mnist_replicates=(1,),
    sizes=(50, 100),
    size_replicates=1,
    mnist_rows=(60,),
    test_rows=60,
    mnist_test_rows=60,
    draws={"block": 30, "lattice": 20, "mnist": 12},
    warm_up={"block": 40, "lattice": 40, "mnist": 40},
    exact_draws=60,
    langevin_iterations=4000,
    langevin_lattice=2000,
    refreshment_iterations=4000,
    prior_values=(20.0,),
    prior_replicates=1,
    side=4,
    images="digits",
    path=8,
    mixture=10,
    mnist_mixture=10,
    samples=36,
    leapfrog_points=40,
)

QUICK = Profile(
    name="quick",
    p0_block=(1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99),
    p0_lattice=(1e-4, 0.01, 0.1, 0.5, 0.6, 0.9),
    p0_mnist=(1e-3, 0.1, 0.35, 0.6),
    block_replicates=4,
    lattice_replicates=2,
    mnist_replicates=(1, 1),
    sizes=(50, 100, 200, 500, 1000),
    size_replicates=2,
    mnist_rows=(100, 1000),
    test_rows=1000,
    mnist_test_rows=2000,
    draws={"block": 500, "lattice": 250, "mnist": 60},
    warm_up={"block": 300, "lattice": 300, "mnist": 150},
    exact_draws=3000,
    langevin_iterations=1_000_000,
    langevin_lattice=200_000,
    refreshment_iterations=1_000_000,
    prior_values=(1.0, 2.0, 10.0, 20.0),
    prior_replicates=1,
    path=30,
    mixture=50,
)

FULL = Profile(
    name="full",
    p0_block=GRID,
    p0_lattice=(1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7),
    p0_mnist=(1e-4, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8),
    block_replicates=10,
    lattice_replicates=10,
    mnist_replicates=(10, 10),
    sizes=(50, 100, 200, 500, 1000),
    size_replicates=10,
    mnist_rows=(100, 1000),
    test_rows=1000,
    mnist_test_rows=10_000,
    draws={"block": 500, "lattice": 300, "mnist": 120},
    warm_up={"block": 300, "lattice": 200, "mnist": 150},
    exact_draws=20_000,
    langevin_iterations=10_000_000,
    langevin_lattice=10_000_000,
    refreshment_iterations=10_000_000,
    prior_values=(1.0, 2.0, 10.0, 20.0),
    prior_replicates=3,
    matching_fits=4,
)

PROFILES = {profile.name: profile for profile in (SMOKE, QUICK, FULL)}


def find_profile(name: str) -> Profile:
    """The profile of that name."""
    if name not in PROFILES:
        raise DataError(f"There is no profile {name!r}; the profiles are {', '.join(PROFILES)}.")
    return PROFILES[name]
