"""`SpikeSlabMRF`: the scikit-learn face of edgewise; no mathematics."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import fields
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from edgewise.data import Data, encode_rows, read_data
from edgewise.errors import DataError, EdgewiseWarning
from edgewise.features import FeatureArgument, Features, check_candidates
from edgewise.fitting import Question, answer, pose, shortfall, time_left
from edgewise.posterior.posterior import Posterior
from edgewise.predict.levels import each_given_others as levels_given_others
from edgewise.predict.mixtures import each_given_others
from edgewise.predict.scores import (
    LogLikelihood,
    conditional_log_likelihood,
    conditional_probability,
    level_probabilities,
    log_likelihood,
    pseudo_log_likelihood,
)
from edgewise.predict.strata import in_strata, new_rows
from edgewise.priors import Prior
from edgewise.run.chains import RunResult
from edgewise.run.estimate import Estimate, estimate
from edgewise.run.options import RunOptions, check_whole
from edgewise.run.progress import Callback

if TYPE_CHECKING:
    import pandas

_SHARED = ("executor", "callback")
_OPTIONS = {field.name for field in fields(RunOptions)}


class SpikeSlabMRF(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Bayesian structure learning of a Markov random field of binary, ordinal and nominal variables.

    Every candidate edge is either absent or has a parameter from a normal slab; `fit` draws graphs and
    parameters from their posterior until the answer is precise enough.

    Parameters
    ----------
    engine : {"auto", "exact", "particle", "surrogate", "langevin"}
        How to draw; ``"auto"`` chooses by the size of the problem and `engine_reason_` says why.
    chains : int
        Number of independent chains.
    min_draws, max_draws : int
        Kept draws per chain.
    thin : int or "auto"
        Iterations per kept draw; ``"auto"`` lets the engine measure what is worth keeping.
    target_error : float
        Stop when the Monte Carlo standard error of every inclusion probability is at most this (and the
        chains agree: R-hat < 1.01, with the 400 effective draws of a green light).
    target_ess : float, "auto" or None
        ``"auto"`` stops by `target_error`. A number stops instead when the slowest uncertain edge has this
        bulk effective sample size (and R-hat < 1.01). None makes all `max_draws` draws.
    max_time : float, optional
        Wall seconds after which to stop; the one-time compiling does not count. If that is inside warm-up,
        the result shows where the chains were and is marked (``posterior_.info["warm_up_unfinished"]``).
    prior : Prior, optional
        The whole prior; the default is that of Chen & Welling (2012).
    features : int, list of cliques or Features, optional
        Candidates: all pairs by default, all cliques up to a size, or the ones listed.
    settings : mapping, optional
        Settings of the engine that are to differ from its defaults.
    start : str or sequence of str
        Where chains start: ``"default"``, ``"empty"``, ``"random"`` or ``"full"``; one for all or one each.
    n_jobs : int, optional
        Chains computed at the same time, as in joblib (-1: all cores). None takes all cores, unless joblib
        is at work around the fit and says otherwise.
    executor : concurrent.futures.Executor or distributed.Client, optional
        Where to compute instead of on threads of this process.
    random_state : int, RandomState, Generator or None
        Seed. The same seed gives the same draws whatever the number of workers.
    progress : bool or "lines"
        Whether to show what happens: a live table in terminals and notebooks, plain lines elsewhere.
    callback : callable, optional
        Called now and then with an :class:`edgewise.run.progress.View`.
    checkpoint : path, optional
        Directory in which the fit is saved every `checkpoint_every` seconds. A fit that finds its own
        checkpoint there goes on to the very draws it would have made.
    checkpoint_every : float
        Seconds between saves.
    missing : {"impute", "drop", "error"}
        What to do about blank cells: draw them along with everything else, given the other answers of their
        row; leave their rows out; or refuse. Imputing takes them to be missing at random.
    constant : {"error", "keep", "drop"}
        What to do about columns with one level.
    drop_columns : list of names or numbers, optional
        Columns that are no variables. They may be there or not in rows given later.
    adjust : list of columns, mapping or DataFrame, optional
        Covariates to hold fixed: biases are free in each combination of their labels, and couplings shared.
        They are no variables, and may be there or not in rows given later, but predictions ask for them.
    bins : int, optional
        Quantile bins of a covariate that is a number with more values (4 by default).
    kinds, levels, blank, cut, binarize : optional
        What columns with more than two levels are, the order of their levels, what is blank and where to cut;
        see :func:`edgewise.data.read_data`.

    Attributes
    ----------
    posterior_ : Posterior
        Everything there is to ask.
    inclusion_ : array (p, p)
        Posterior inclusion probability of every pair.
    coupling_ : array (p, p)
        Posterior mean of the pair parameters, with scores from 0 to 1; the mean strength of the matrix where
        a variable is nominal.
    bias_ : array (p,)
        Posterior mean of the biases, in 0/1 coding; where there are more levels, a list of the mean
        thresholds of each variable.
    median_model_ : MRF
        The edges that are more probable than not, with their mean parameters.
    prior_ : ResolvedPrior
        The prior laid out over the candidates.
    engine_, engine_reason_ : str
        The engine used, and why.
    stop_reason_ : str
        ``"target_ess"`` (as precise as asked, by either rule), ``"max_draws"``, ``"max_time"`` or
        ``"interrupted"``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> rain = rng.random(200) < 0.5
    >>> umbrella = np.where(rng.random(200) < 0.9, rain, ~rain)
    >>> dice = rng.random(200) < 0.5
    >>> X = np.stack([rain, umbrella, dice], axis=1)
    >>> fitted = SpikeSlabMRF(random_state=0, progress=False, max_draws=2000).fit(X)
    >>> (fitted.inclusion_ > 0.5).astype(int)
    array([[0, 1, 0],
           [1, 0, 0],
           [0, 0, 0]])
    """

    def __init__(
        self,
        engine: str = RunOptions.engine,
        *,
        chains: int = RunOptions.chains,
        min_draws: int = RunOptions.min_draws,
        max_draws: int = RunOptions.max_draws,
        thin: int | str = RunOptions.thin,
        target_error: float = RunOptions.target_error,
        target_ess: float | str | None = RunOptions.target_ess,
        max_time: float | None = RunOptions.max_time,
        prior: Prior | None = None,
        features: FeatureArgument | Features = None,
        settings: Mapping[str, Any] | None = RunOptions.settings,
        start: str | Sequence[str] = RunOptions.start,
        n_jobs: int | None = RunOptions.n_jobs,
        executor: Executor | None = RunOptions.executor,
        random_state: Any = None,
        progress: bool | str = RunOptions.progress,
        callback: Callback | None = RunOptions.callback,
        checkpoint: str | os.PathLike[str] | None = RunOptions.checkpoint,
        checkpoint_every: float = RunOptions.checkpoint_every,
        missing: str = "impute",
        constant: str = "error",
        drop_columns: Sequence[str | int] | None = None,
        kinds: Mapping[str, str] | str | None = None,
        levels: Mapping[str, Sequence[Any]] | None = None,
        blank: Any = None,
        cut: Any = None,
        binarize: str | None = None,
        adjust: Any = None,
        bins: int | None = None,
    ) -> None:
        self.engine = engine
        self.chains = chains
        self.min_draws = min_draws
        self.max_draws = max_draws
        self.thin = thin
        self.target_error = target_error
        self.target_ess = target_ess
        self.max_time = max_time
        self.prior = prior
        self.features = features
        self.settings = settings
        self.start = start
        self.n_jobs = n_jobs
        self.executor = executor
        self.random_state = random_state
        self.progress = progress
        self.callback = callback
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.missing = missing
        self.constant = constant
        self.drop_columns = drop_columns
        self.kinds = kinds
        self.levels = levels
        self.blank = blank
        self.cut = cut
        self.binarize = binarize
        self.adjust = adjust
        self.bins = bins

    # Made when asked for: two matrices of ten thousand variables would be all the memory of a fit.
    @property
    def inclusion_(self) -> np.ndarray:
        """Posterior inclusion probability of every pair: (p, p)."""
        return self._of_fit().inclusion

    @property
    def coupling_(self) -> np.ndarray:
        """Posterior mean of the pair parameters: (p, p)."""
        return self._of_fit().coupling()

    def _of_fit(self) -> Posterior:
        if "posterior_" not in vars(self):
            raise AttributeError("There is no posterior before fit.")
        return self.posterior_

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> SpikeSlabMRF:
        """Draw from the posterior given the rows of `X`.

        Parameters
        ----------
        X : array, DataFrame, path of a file, BinaryData or LevelData
            One row per case, one column per variable with two to twenty levels.
        y : ignored
            Present because scikit-learn expects it.
        sample_weight : array (rows,), optional
            How often each row counts.
        groups : str, int or array (rows,), optional
            Groups to compare: a column of `X`, which is then no variable, or a label for each row. Every
            pair is then absent, present and the same in all groups, or present and different
            (:meth:`Posterior.group_summary <edgewise.Posterior.group_summary>`).

        Returns
        -------
        SpikeSlabMRF
            Itself. After Ctrl-C too, with the draws made so far and `stop_reason_` ``"interrupted"``.
        """
        started = time.monotonic()
        self._question, options = self._ask(X, sample_weight, groups)
        self._set_results(*answer(self._question, time_left(options, started)))
        return self

    def _ask(self, X: Any, sample_weight: Any, groups: Any) -> tuple[Question, RunOptions]:
        """Read and check everything that a fit is about."""
        self._check_prior()
        options = self._options(seed=_seed(self.random_state))
        self._note_columns(X)
        aside = self.adjust is not None or isinstance(groups, str | Integral)
        if self.drop_columns is None and self.constant != "drop" and not aside:
            check_candidates(self.features, getattr(self, "n_features_in_", 0))  # before rows are read
        data = read_data(
            X,
            sample_weight=sample_weight,
            missing=self.missing,
            constant=self.constant,
            drop_columns=self.drop_columns,
            kinds=self.kinds,
            levels=self.levels,
            blank=self.blank,
            cut=self.cut,
            binarize=self.binarize,
            groups=groups,
            adjust=self.adjust,
            bins=self.bins,
        )
        if not hasattr(self, "n_features_in_"):
            self.n_features_in_ = data.n_variables
        question = pose(data, self.prior, self.features)
        return question, options

    def estimate(self, X: Any, sample_weight: Any = None, groups: Any = None) -> Estimate:
        """What `fit` would take: memory, seconds per draw and the least time; nothing is fitted.

        The table is read and checked, and one chain tried on it for a few seconds.

        Parameters
        ----------
        X, sample_weight, groups
            As of :meth:`fit`.

        Returns
        -------
        Estimate
            To print, or to ask (``total_bytes``, ``seconds``, ``fits``).

        Examples
        --------
        >>> from edgewise import SpikeSlabMRF, datasets
        >>> found = SpikeSlabMRF().estimate(datasets.diabetes())
        >>> found.engine, found.candidates, found.fits
        ('exact', 55, True)
        """
        question, options = self._ask(X, sample_weight, groups)
        return estimate(question.problem, options)

    def extend(self, draws: int = 1000) -> SpikeSlabMRF:
        """Go on where the chains stopped, for `draws` more draws of each chain.

        The result is the same as if the fit had been that long from the beginning.
        """
        check_is_fitted(self)
        check_whole("draws", draws, 1)
        # A fit that ended inside warm-up shows iterations that are no draws of its chains.
        made = min(len(part) for part in self._result.all_draws)
        total = min(made, self.posterior_.n_draws) + int(draws)
        options = self._options(
            engine=self.engine_, min_draws=total, max_draws=total, target_ess=None, max_time=None
        )
        self._set_results(*answer(self._question, options, self._result))
        return self

    def summary(self, **options: Any) -> pandas.DataFrame:
        """One row per candidate edge; see :meth:`Posterior.summary <edgewise.Posterior.summary>`."""
        check_is_fitted(self)
        return self.posterior_.summary(**options)

    def score(
        self, X: Any, y: Any = None, *, kind: str = "pseudo", groups: Any = "all", mixture: int = 100
    ) -> float:
        """Mean log score per row of the posterior mixture; larger is better.

        The mean of :meth:`score_samples`, which has the parameters.
        """
        check_is_fitted(self)
        if kind == "likelihood" and self.posterior_.strata is None:
            return self._log_likelihood(X, mixture).mean
        return float(np.mean(self.score_samples(X, kind=kind, groups=groups, mixture=mixture)))

    def score_samples(
        self, X: Any, *, kind: str = "pseudo", groups: Any = "all", mixture: int = 100
    ) -> np.ndarray:
        """Log score of every row under the posterior mixture; larger is better.

        Parameters
        ----------
        X : array, DataFrame or path
            Rows in the coding of the fit.
        kind : {"pseudo", "likelihood", "conditional"}
            The sum over variables of the log probability of each given all others; the log probability of
            whole rows (exact where that is possible, by annealed importance sampling elsewhere); or that of
            `groups` of variables given the rest (see :mod:`edgewise.predict`).
        mixture : int
            Number of posterior draws in the mixture.

        Returns
        -------
        array (rows,)
        """
        if kind == "likelihood" and self.posterior_.strata is None:
            return self._log_likelihood(X, mixture).values
        scores = {
            "pseudo": pseudo_log_likelihood,
            "conditional": lambda models, rows: conditional_log_likelihood(models, rows, groups),
            "likelihood": lambda models, rows: log_likelihood(models, rows).values,
        }
        if not isinstance(kind, str) or kind not in scores:
            raise DataError(f"kind must be 'pseudo', 'likelihood' or 'conditional', not {kind!r}.")
        found: np.ndarray = self._in_strata(X, self._rows(X), None, mixture, scores[kind])
        return found

    def _log_likelihood(self, X: Any, mixture: int) -> LogLikelihood:
        rows = self._rows(X)
        return log_likelihood(self.posterior_.mixture(mixture), rows)

    def predict(self, X: Any, target: Any = None, *, mixture: int = 100, groups: Any = None) -> Any:
        """The most probable level of variables given the other cells of their row, in your labels.

        Parameters
        ----------
        X, target, mixture, groups
            As of :meth:`predict_proba`.

        Returns
        -------
        array (rows,), or a table (rows, targets)
            One label per row where `target` is one variable. Otherwise one column per variable, as a
            DataFrame if the fit had column names and an array if not.
        """
        found = self.predict_proba(X, target, mixture=mixture, groups=groups)
        if self.posterior_.scales.all_binary:
            found = (found >= 0.5).astype(np.uint8)
        else:
            parts = [found] if isinstance(found, np.ndarray) else found
            found = np.stack([part.argmax(axis=1) for part in parts], axis=1)
        if isinstance(target, str | Integral):
            label: np.ndarray = np.array(self._question.levels[self._targets(target)[0]])[found[:, 0]]
            return label
        return self._labelled(found, None if target is None else self._targets(target))

    def impute(self, X: Any, *, mixture: int = 100, groups: Any = None) -> Any:
        """The rows with their blank cells filled in by the most probable level, in your labels.

        Each blank cell is predicted from the cells of its row that are there. A DataFrame if the fit had
        column names, and an array if not. `groups` as of :meth:`predict_proba`.
        """
        rows = self._rows(X, allow_missing=True)
        if self.posterior_.scales.all_binary:
            chance = self._in_strata(X, rows, groups, mixture, conditional_probability)
            return self._labelled((chance >= 0.5).astype(np.uint8))
        found = self._in_strata(X, rows, groups, mixture, level_probabilities)
        return self._labelled(np.stack([part.argmax(axis=1) for part in found], axis=1))

    def predict_proba(self, X: Any, target: Any = None, *, mixture: int = 100, groups: Any = None) -> Any:
        """Probability of the levels of variables given the other cells of their row.

        Parameters
        ----------
        X : array, DataFrame or path
            Rows in the coding of the fit. Blank cells are unknown and summed over.
        target : name, index or a list of them, optional
            Variables to predict; none of their own cells is looked at. Without it every variable is predicted
            in turn, given all the others.
        mixture : int
            Number of posterior draws in the mixture.
        groups : str, int or array (rows,), optional
            Where groups were compared: the column of `X` or the labels that say to which group each row
            belongs. Without it the column of the fit is looked for in `X`, as covariates that were held
            fixed are.

        Returns
        -------
        array (rows, targets)
            Where all variables of the fit have two levels: the probability of the level that counts as 1,
            one column per target, also when there is only one. This is not the shape of scikit-learn's
            classifiers, which have one column per class: for one target, ``np.hstack([1 - p, p])`` is that.
        array (rows, levels), or a list of these
            Where some have more: the probability of every level of the one target, or of each target.
        """
        rows = self._rows(X, allow_missing=True)
        binary = self.posterior_.scales.all_binary
        if target is None:
            others = each_given_others if binary else levels_given_others
            return self._in_strata(X, rows, groups, mixture, others)
        wanted, each = self._targets(target), conditional_probability if binary else level_probabilities
        found = self._in_strata(X, rows, groups, mixture, lambda models, part: each(models, part, wanted))
        return found[0] if not binary and isinstance(target, str | Integral) else found

    def sample(self, n: int = 1, random_state: Any = None, *, mixture: int = 100, group: Any = None) -> Any:
        """Draw `n` rows from the posterior predictive distribution, in the labels of the fit.

        Returns a DataFrame if the fit had column names and an array otherwise. Where groups were compared,
        `group` is the one to draw from; strata occur as often as among the rows of the fit.
        """
        check_is_fitted(self)
        check_whole("n", n, 1)
        seed = _seed(random_state)
        rng = np.random.default_rng(np.random.SeedSequence().entropy if seed is None else seed)
        return self._labelled(new_rows(self.posterior_, int(n), mixture, rng, group))

    def _in_strata(self, X: Any, rows: np.ndarray, groups: Any, mixture: int, answer: Any) -> Any:
        return in_strata(self.posterior_, X, rows, groups, mixture, answer)

    def _options(self, **changes: Any) -> RunOptions:
        shared = {name: value for name, value in vars(self).items() if name in _OPTIONS}
        return RunOptions(**{**shared, **changes})

    def _set_results(self, posterior: Posterior, result: RunResult) -> None:
        self._result = result
        self.posterior_ = posterior
        if posterior.scales.all_binary:
            self.bias_ = posterior.biases().mean(axis=(0, 1))
        else:
            self.bias_ = [posterior.thresholds(name).mean(axis=(0, 1)) for name in posterior.names]
        self.median_model_ = posterior.median_model
        self.prior_ = self._question.problem.prior
        self.engine_ = result.info["engine"]
        self.engine_reason_ = result.info["engine_reason"]
        self.stop_reason_ = result.info["stop_reason"]
        missing = shortfall(self._question, result, self._options())
        if missing is not None:
            warnings.warn(missing, EdgewiseWarning, stacklevel=3)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with `deep` also those of the prior's parts, such as ``prior__inclusion__p0``."""
        found: dict[str, Any] = super().get_params(deep=False)
        if deep and isinstance(self.prior, Prior):
            found |= {f"prior__{name}": value for name, value in self.prior.parameters().items()}
        return found

    def set_params(self, **params: Any) -> SpikeSlabMRF:
        """Set parameters, also those of the prior's parts (``prior__inclusion__p0=0.2``); it is replaced."""
        nested = {name: value for name, value in params.items() if name.startswith("prior__")}
        super().set_params(**{name: value for name, value in params.items() if name not in nested})
        if nested:
            prior = self.prior if isinstance(self.prior, Prior) else Prior()
            for name, value in nested.items():
                prior = prior.with_parameter(name.removeprefix("prior__"), value)
            self.prior = prior
        return self

    def _check_prior(self) -> None:
        if self.prior is not None and not isinstance(self.prior, Prior):
            raise DataError(
                f"prior must be an edgewise.priors.Prior or None, not {self.prior!r}; "
                "for instance Prior(inclusion=FixedInclusion(0.1))."
            )

    def _note_columns(self, X: Any) -> None:
        """Set `n_features_in_` and `feature_names_in_` as scikit-learn does, where X has columns."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                delattr(self, name)
        if len(getattr(X, "shape", ())) == 2:
            validate_data(self, X, skip_check_array=True)
        elif isinstance(X, Data):
            self.feature_names_in_ = np.array(X.names, object)

    def _rows(self, X: Any, allow_missing: bool = False) -> np.ndarray:
        check_is_fitted(self)
        if len(getattr(X, "shape", ())) == 2 and not hasattr(X, "columns"):
            validate_data(self, X, reset=False, skip_check_array=True)
        names, levels = self._question.names, self._question.levels
        blank = self._question.notes.get("blanks", ())
        return encode_rows(X, names, levels, allow_missing=allow_missing, blank=blank)

    def _targets(self, target: Any) -> list[int]:
        names = self._question.names
        wanted = [target] if isinstance(target, str | Integral) else list(target)
        found = []
        for variable in wanted:
            if isinstance(variable, str) and variable in names:
                found.append(names.index(variable))
            elif isinstance(variable, Integral) and 0 <= int(variable) < len(names):
                found.append(int(variable))
            else:
                known = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
                raise DataError(f"There is no variable {variable!r}; the variables are: {known}.")
        return found

    def _labelled(self, rows: np.ndarray, variables: Sequence[int] | None = None) -> Any:
        """Rows of numbers of levels, of all variables or some, in the labels of the fit."""
        chosen = range(len(self._question.names)) if variables is None else variables
        names = [self._question.names[i] for i in chosen]
        columns = [np.array(self._question.levels[i])[rows[:, k]] for k, i in enumerate(chosen)]
        if hasattr(self, "feature_names_in_"):
            import pandas

            return pandas.DataFrame(dict(zip(names, columns)))
        mixed = len({column.dtype.kind for column in columns}) > 1
        return np.stack([column.astype(object) for column in columns] if mixed else columns, axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        tags.non_deterministic = False
        return tags

    def __sklearn_clone__(self) -> SpikeSlabMRF:
        # An executor cannot be copied, and a copy of a callback would report to nobody.
        parameters = self.get_params(deep=False)
        copy = type(self)(
            **{
                name: value if name in _SHARED else clone(value, safe=False)
                for name, value in parameters.items()
            }
        )
        if hasattr(self, "_metadata_request"):
            copy._metadata_request = self._metadata_request
        return copy

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        # Threads, sockets and displays stay where they are; the rest of the fit travels.
        return {name: None if name in _SHARED else value for name, value in state.items()}

    def _html_repr(self) -> str:
        page: str = super()._html_repr()
        if not hasattr(self, "posterior_"):
            return page
        table = self.posterior_.summary().sort_values("inclusion", ascending=False).head(10)
        shown = table[["edge", "inclusion", "evidence", "mean", "sd"]]
        html = shown.to_html(index=False, escape=True, float_format=lambda value: f"{value:.3f}")
        return (
            f"{page}<p>{self.posterior_.info['stop_message']} The ten most probable of "
            f"{self.posterior_.n_cliques:,} candidate edges:</p>{html}"
        )


def _seed(random_state: Any) -> int | None:
    """A seed that can be written down."""
    if random_state is None:
        return None
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, Integral) and not isinstance(random_state, bool) and int(random_state) >= 0:
        return int(random_state)
    raise DataError(
        f"random_state must be None, a whole number of at least 0, a Generator or a RandomState; not "
        f"{random_state!r}."
    )
