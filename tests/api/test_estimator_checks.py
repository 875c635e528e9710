"""scikit-learn's own checks, as far as they make sense for a density of binary variables.

Most checks fit random numbers, which is what the data door refuses. They are therefore run twice: on the
estimator as it is, where every check that brings such numbers must be refused by the door, and on a subclass
that first cuts every column at a half, where the rest of each check comes to bear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse
from sklearn.utils.estimator_checks import estimator_checks_generator

from edgewise import SpikeSlabMRF
from edgewise.errors import DataError


@dataclass(frozen=True)
class Refusal:
    """Why a check cannot pass, and the exception that has to be at the root of its failure."""

    reason: str
    kind: type[Exception]
    words: str


NOT_BINARY = Refusal(
    "brings columns with more than two levels, which the data door or this engine refuses",
    DataError,
    r"has \d+ (levels|different values)|two levels only",
)


CLASSIFIER = Refusal(
    "takes everything that has predict for an estimator of one label per row (sparse rows have a test below)",
    AssertionError,
    "fail gracefully on sparse",
)


def own_words(words):
    return Refusal(
        "is refused, but in the words of the data door rather than those of scikit-learn", DataError, words
    )


SKIPPED = "check_array_api_input"  # by scikit-learn, unless SCIPY_ARRAY_API is set
EXPECTED = {
    "check_complex_data": own_words("its cells are of type complex128"),
    "check_estimators_empty_data_messages": own_words("no (rows|columns)|0 (rows|columns)|empty"),
    "check_fit2d_1feature": own_words("only the column 'x0' is a variable"),
    "check_fit2d_predict1d": own_words(r"it has 1 dimension \(shape"),
    "check_estimators_nan_inf": own_words("infinite|inf|missing"),
    "check_estimator_sparse_array": CLASSIFIER,
    "check_estimator_sparse_matrix": CLASSIFIER,
}
EXPECTED_AS_IT_IS = EXPECTED | {
    f"check_{name}": NOT_BINARY
    for name in [
        "dict_unchanged",
        "dont_overwrite_parameters",
        "estimators_dtypes",
        "estimators_fit_returns_self",
        "estimators_nan_inf",
        "estimators_overwrite_params",
        "f_contiguous_array_estimator",
        "fit_check_is_fitted",
        "fit_idempotent",
        "fit2d_predict1d",
        "methods_sample_order_invariance",
        "methods_subset_invariance",
        "n_features_in",
        "n_features_in_after_fitting",
        "positive_only_tag_during_fit",
        "readonly_memmap_input",
        "sample_weight_equivalence_on_dense_data",
        "sample_weight_equivalence_on_sparse_data",
        "sample_weights_not_an_array",
        "sample_weights_not_overwritten",
        "sample_weights_pandas_series",
        "sample_weights_shape",
    ]
}


class Halved(SpikeSlabMRF):
    """Makes ones of all numbers above a half.

    The cut is the same for all data, as it must be if weighted rows are to be the same as repeated ones.
    """

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(halve(X), y, sample_weight)

    def score(self, X, y=None):
        return super().score(halve(X), y)

    def score_samples(self, X, **options):
        return super().score_samples(halve(X), **options)

    def predict_proba(self, X, target=None, **options):
        return super().predict_proba(halve(X), target, **options)


@pytest.mark.parametrize(
    "container", [scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.coo_array]
)
def test_sparse_rows_are_read_as_dense_ones(container):
    rows = np.random.default_rng(0).integers(0, 2, (40, 3))
    dense, sparse = (
        small(SpikeSlabMRF).set_params(random_state=0),
        small(SpikeSlabMRF).set_params(random_state=0),
    )
    dense.fit(rows)
    sparse.fit(container(rows))
    assert np.array_equal(sparse.predict(container(rows)), dense.predict(rows))
    assert np.array_equal(sparse.predict_proba(container(rows)), dense.predict_proba(rows))
    assert np.array_equal(sparse.score_samples(container(rows)), dense.score_samples(rows))


def halve(X):
    if scipy.sparse.issparse(X):
        return scipy.sparse.csr_array(halve(X.toarray()))
    if hasattr(X, "columns"):
        return X.gt(0.5).astype(int)
    numbers = np.asarray(X)
    if numbers.ndim != 2 or numbers.dtype.kind not in "iuf" or not numbers.size:
        return X
    return np.where(np.isnan(numbers), np.nan, numbers > 0.5)


def small(kind):
    # Iterations of the langevin engine are cheap at any size, and some checks bring 30 columns.
    return kind(
        engine="langevin",
        missing="error",
        chains=1,
        min_draws=4,
        max_draws=4,
        thin=1,
        target_ess=None,
        settings={"warm_up": 10},
        constant="keep",
        progress=False,
    )


def cases(kind, expected):
    for estimator, check in estimator_checks_generator(small(kind), mark=None):
        name = check.func.__name__
        marks = [pytest.mark.skip(reason="needs SCIPY_ARRAY_API")] if name == SKIPPED else []
        yield pytest.param(
            estimator, check, expected.get(name), marks=marks, id=f"{name}-{check.keywords or ''}"
        )


def chain_of(error):
    """An exception and all those that it came from."""
    found = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def run_check(estimator, check, refusal):
    """Run a check, which passes; or fails for the very reason that is expected of it."""
    if refusal is None:
        check(estimator)
        return
    with pytest.raises(Exception) as caught:
        check(estimator)
    roots = [error for error in chain_of(caught.value) if isinstance(error, refusal.kind)]
    assert roots, (
        f"{caught.value!r} does not come from {refusal.kind.__name__}, as it should: {refusal.reason}"
    )
    assert any(re.search(refusal.words, str(error)) for error in roots), str(roots[0])


@pytest.mark.parametrize(("estimator", "check", "refusal"), list(cases(SpikeSlabMRF, EXPECTED_AS_IT_IS)))
def test_as_it_is(estimator, check, refusal):
    run_check(estimator, check, refusal)


@pytest.mark.filterwarnings("ignore::edgewise.errors.EdgewiseWarning")
@pytest.mark.parametrize(("estimator", "check", "refusal"), list(cases(Halved, EXPECTED)))
def test_with_halved_columns(estimator, check, refusal):
    run_check(estimator, check, refusal)


def test_a_failure_for_another_reason_is_noticed():
    def fails(estimator):
        raise TypeError("something else")

    with pytest.raises(AssertionError, match="does not come from DataError"):
        run_check(None, fails, NOT_BINARY)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        run_check(None, lambda estimator: None, NOT_BINARY)
