"""Birth and death (eqs. 8-13): the truncated Gaussian, the corrected ratio, and their balance."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from broken import Exposed
from edgewise.kernels import jumps as kernels
from edgewise.kernels.compiling import entry
from edgewise.kernels.random import scalar_stream

jumps = Exposed(kernels)

# mode of h in sds beyond the edge of the window (negative: inside), half-width of the window in sds
WINDOWS = [
    (beyond, half)
    for beyond, half in itertools.product([-0.01, -1.0, 0.0, 0.3, 1.0, 6.0, 20.0, 40.0], [0.01, 0.7, 5.0])
    if beyond > -half
] + [(-5.0, 5.0), (-0.01, 0.01)]


def coefficients(beyond: float, half: float, precision: float, sign: int) -> tuple[float, float]:
    """Gradient and width of the window whose edge lies `beyond` sds inside of the mode."""
    root = math.sqrt(precision)
    return sign * (beyond + half) * root, half / root


def exact_log_normaliser(gradient: float, precision: float, width: float) -> float:
    with mpmath.workdps(40):
        g, lam, delta = mpmath.mpf(gradient), mpmath.mpf(precision), mpmath.mpf(width)
        near = abs(g) / mpmath.sqrt(lam) - delta * mpmath.sqrt(lam)
        far = abs(g) / mpmath.sqrt(lam) + delta * mpmath.sqrt(lam)
        with mpmath.workdps(40 + int(0.3 * float(far) ** 2)):
            mass = (mpmath.erf(far / mpmath.sqrt(2)) - mpmath.erf(near / mpmath.sqrt(2))) / 2
            result = mpmath.log(mass) + g**2 / (2 * lam) + mpmath.log(2 * mpmath.pi / lam) / 2
        return float(result)


@pytest.mark.parametrize(("beyond", "half"), WINDOWS)
@pytest.mark.parametrize("precision", [0.2, 25.0, 4e4])
@pytest.mark.parametrize("sign", [1, -1])
def test_log_normaliser_against_mpmath(beyond, half, precision, sign):
    gradient, width = coefficients(beyond, half, precision, sign)
    found = jumps.log_normaliser(gradient, precision, width)
    assert found == pytest.approx(exact_log_normaliser(gradient, precision, width), abs=2e-12, rel=2e-13)


def test_the_plain_normaliser_fails_in_the_tail():
    gradient, width = coefficients(40.0, 0.7, 25.0, 1)
    root = 5.0
    plain = special.ndtr(width * root - gradient / root) - special.ndtr(-width * root - gradient / root)
    assert plain < 1e-300
    assert math.isfinite(jumps.log_normaliser(gradient, 25.0, width))


def stream(seed: int) -> np.ndarray:
    return scalar_stream(np.random.SeedSequence(seed))


@entry(arrays=True)
def many_values(gradient, precision, width, count, state):
    values = np.empty(count)
    for k in range(count):
        values[k] = kernels.propose_value(gradient, precision, width, state)
    return values


@pytest.mark.parametrize(("beyond", "half"), WINDOWS)
@pytest.mark.parametrize("sign", [1, -1])
def test_proposals_against_scipy(beyond, half, sign):
    precision = 7.0
    gradient, width = coefficients(beyond, half, precision, sign)
    values = many_values(gradient, precision, width, 20_000, stream(11))
    assert np.abs(values).max() <= width * (1 + 1e-12)
    mean, sd = gradient / precision, precision**-0.5
    reference = stats.truncnorm((-width - mean) / sd, (width - mean) / sd, mean, sd)
    assert stats.kstest(values, reference.cdf).pvalue > 1e-4
    if half > 0.5:  # in a narrow window q_opt is all but flat, and the control would be blind
        mirrored = stats.truncnorm((-width + mean) / sd, (width + mean) / sd, -mean, sd)
        assert mean == 0 or stats.kstest(values, mirrored.cdf).pvalue < 1e-4
        wider = stats.truncnorm((-width - mean) / sd / 2, (width - mean) / sd / 2, mean, 2 * sd)
        assert stats.kstest(values, wider.cdf).pvalue < 1e-4


class Model:
    """Three variables; exact mean and variance of the feature x0 x1 as its parameter changes."""

    states = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
    total, rows, log_odds, slab_scale = 31.0, 80.0, -0.7, 1.4

    def moments(self, value: float) -> tuple[float, float]:
        x = self.states
        energy = x @ [-0.6, 0.2, -0.3] + 0.9 * x[:, 1] * x[:, 2] + value * x[:, 0] * x[:, 1]
        mean = float(special.softmax(energy) @ (x[:, 0] * x[:, 1]))
        return mean, mean * (1 - mean)

    def log_ratios(self, value: float, width: float, back_transform: bool = True) -> tuple[float, float]:
        """Birth and death with exact moments and no noise (infinitely many particles)."""
        mean, variance = self.moments(0.0)
        common = (math.inf, self.log_odds, self.slab_scale)
        proposal = jumps.proposal_at_birth(self.total, self.rows, mean, variance, self.slab_scale)
        birth = jumps.log_ratio_birth(value, self.total, self.rows, mean, variance, *common, *proposal, width)
        mean, variance = self.moments(value)
        proposal = jumps.proposal_at_death(
            value if back_transform else 0.0, self.total, self.rows, mean, variance, self.slab_scale
        )
        death = jumps.log_ratio_death(value, self.total, self.rows, mean, variance, *common, *proposal, width)
        return birth, death


@pytest.mark.parametrize("value", [0.7, -0.4])
def test_birth_and_death_cancel_to_third_order(value):
    """Exact means: the sum of the log-ratios falls at least with the cube of the jump."""
    model = Model()
    scales = (0.0125, 0.00625)
    careful = [abs(sum(model.log_ratios(scale * value, scale))) for scale in scales]
    assert careful[0] < 2e-6
    assert careful[0] / careful[1] > 7.0
    careless = [abs(sum(model.log_ratios(scale * value, scale, False))) for scale in scales]
    assert careless[0] / careless[1] < 5.0  # without f_bar - a S^2: second order only


def test_birth_ratio_against_the_exact_one():
    """Eq. 8 with the true partition functions, to third order in a."""
    model = Model()
    errors = []
    for scale in (0.1, 0.05):
        value = 0.7 * scale
        birth, _ = model.log_ratios(value, scale)
        mean, variance = model.moments(0.0)
        gradient, precision = jumps.proposal_at_birth(
            model.total, model.rows, mean, variance, model.slab_scale
        )
        exact = (
            value * model.total
            - model.rows * math.log1p(math.expm1(value) * mean)
            + model.log_odds
            + stats.norm(0, model.slab_scale).logpdf(value)
            - value * gradient
            + 0.5 * precision * value**2
            + exact_log_normaliser(gradient, precision, scale)
        )
        errors.append(abs(birth - exact))
    assert errors[0] < 0.01
    assert errors[0] / errors[1] > 7.0


def corrected_ratio(counts: np.ndarray, value: float, rows: float, particles: int, corrected: bool = True):
    """R of eq. 11 for every number of particles that carry the feature."""
    means = counts / particles
    variances = means * (1 - means) * particles / (particles - 1)
    noise_free = math.inf if not corrected else particles
    return np.exp(
        [jumps.log_partition_ratio(value, rows, m, v, noise_free) for m, v in zip(means, variances)]
    )


@pytest.mark.parametrize("mean", [0.5, 0.2])
def test_ratio_is_unbiased_to_second_order(mean):
    """E[R / R_exact] over the binomial law of the particles; without the correction it is off by a^2."""
    particles, rows = 100, 60.0
    counts = np.arange(particles + 1)
    law = stats.binom(particles, mean).pmf(counts)
    offs = {True: [], False: []}
    for value in (0.08, 0.04):
        exact = math.exp(-rows * math.log1p(math.expm1(value) * mean))
        for corrected, found in offs.items():
            found.append(abs(law @ corrected_ratio(counts, value, rows, particles, corrected) / exact - 1))
    assert offs[True][0] < 0.006
    assert offs[True][0] / offs[True][1] > 7.0
    assert offs[False][0] > 0.015
    assert offs[False][0] / offs[False][1] < 5.0


def test_ratio_by_simulation():
    """Mean and variance of eq. 11 from simulated particles, in Monte Carlo errors."""
    mean, particles, rows, value, repeats = 0.5, 100, 60.0, 0.05, 200_000
    rng = np.random.default_rng(3)
    counts, occurrences = np.unique(rng.binomial(particles, mean, repeats), return_counts=True)
    exact = math.exp(-rows * math.log1p(math.expm1(value) * mean))
    stated = rows**2 * value**2 * mean * (1 - mean) / particles
    for corrected in (True, False):
        ratios = np.repeat(corrected_ratio(counts, value, rows, particles, corrected) / exact, occurrences)
        off = abs(ratios.mean() - 1) / (ratios.std() / math.sqrt(repeats))
        assert (off < 4) == corrected
        if corrected:
            spread = math.sqrt(2 / repeats)
            assert ratios.var() == pytest.approx(stated, rel=0.03 + 4 * spread)
            assert ratios.var() != pytest.approx(2 * stated, rel=0.03 + 4 * spread)


def test_bound_of_births():
    rng = np.random.default_rng(5)
    tightest = math.inf
    for _ in range(2000):
        rows, particles = rng.uniform(1, 500), int(rng.integers(10, 500))
        mean, variance = (m := rng.uniform(0, 1)), m * (1 - m) * particles / (particles - 1)
        total = rng.uniform(0, rows)
        log_odds, slab_scale = rng.normal(), rng.uniform(0.3, 3)
        width = rng.uniform(0.001, 0.3) / math.sqrt(rows * 0.2)
        gradient, precision = jumps.proposal_at_birth(total, rows, mean, variance, slab_scale)
        value = width * rng.uniform(-1, 1)
        ratio = jumps.log_ratio_birth(
            value, total, rows, mean, variance, particles, log_odds, slab_scale, gradient, precision, width
        )
        bound = jumps.birth_bound(log_odds, slab_scale, width, max(total, rows - total))
        accepted = math.exp(min(0.0, ratio))
        assert accepted <= bound * (1 + 1e-12)
        tightest = min(tightest, bound / accepted)
    assert tightest < 1.1
