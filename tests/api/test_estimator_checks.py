"""scikit-learn's own checks, as far as they make sense for a density of binary variables.

Most checks fit random numbers, which is what the data door refuses. They are therefore run twice: on the
estimator as it is, where every check that brings such numbers must be refused by the door, and on a subclass
that first cuts every column at a half, where the rest of each check comes to bear.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.utils.estimator_checks import estimator_checks_generator

from edgewise import SpikeSlabMRF

NOT_BINARY = "brings columns with more than two levels, which the data door refuses"
CLASSIFIER = "takes everything that has predict_proba for a classifier"
OWN_WORDS = "is refused, but in the words of the data door rather than those of scikit-learn"
EXPECTED = {
    "check_array_api_input": "is skipped by scikit-learn unless SCIPY_ARRAY_API is set",
    "check_complex_data": OWN_WORDS,
    "check_estimators_empty_data_messages": OWN_WORDS,
    "check_fit2d_1feature": OWN_WORDS,
    "check_fit2d_predict1d": OWN_WORDS,
    "check_estimators_nan_inf": OWN_WORDS,
    "check_estimator_sparse_array": CLASSIFIER,
    "check_estimator_sparse_matrix": CLASSIFIER,
}
EXPECTED_AS_IT_IS = EXPECTED | {
    f"check_{name}": NOT_BINARY
    for name in [
        "all_zero_sample_weights_error",
        "dict_unchanged",
        "dont_overwrite_parameters",
        "estimator_sparse_array",
        "estimator_sparse_matrix",
        "estimators_dtypes",
        "estimators_fit_returns_self",
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

    def predict_proba(self, X):
        return super().predict_proba(halve(X))


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
    # The marks are made here and not by scikit-learn, so that a check that begins to pass is an error.
    for estimator, check in estimator_checks_generator(small(kind), mark=None):
        name = check.func.__name__
        reason = expected.get(name)
        marks = [pytest.mark.xfail(reason=f"{name} {reason}", strict=True)] if reason else []
        if name == "check_array_api_input":
            marks = [pytest.mark.skip(reason=f"{name} {reason}")]
        yield pytest.param(estimator, check, marks=marks, id=f"{name}-{check.keywords or ''}")


@pytest.mark.parametrize(("estimator", "check"), list(cases(SpikeSlabMRF, EXPECTED_AS_IT_IS)))
def test_as_it_is(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::edgewise.errors.EdgewiseWarning")
@pytest.mark.parametrize(("estimator", "check"), list(cases(Halved, EXPECTED)))
def test_with_halved_columns(estimator, check):
    check(estimator)
