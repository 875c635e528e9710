"""The whole prior of eq. 3, as one says it.

The defaults are the paper's: a = b = c = d = 5 and sigma_b = 10. Cliques can also be given an inclusion
probability of their own, or be forced in or out; these do not inform p0, but a forced or separately
weighted clique that is active still informs sigma0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from edgewise.errors import DataError
from edgewise.features import Clique, Features
from edgewise.kernels.codes import COMMON, FORBIDDEN, FORCED, SEPARATE
from edgewise.priors.attributes import AttributeInclusion, AttributeLayout
from edgewise.priors.communities import BlockInclusion, BlockLayout
from edgewise.priors.parts import (
    BetaInclusion,
    CauchySlab,
    FixedInclusion,
    FixedSlab,
    GammaSlab,
    NormalBias,
    StudentSlab,
)
from edgewise.priors.resolved import ResolvedDifference, ResolvedPrior

Inclusion = BetaInclusion | FixedInclusion | BlockInclusion | AttributeInclusion
Slab = GammaSlab | FixedSlab | StudentSlab | CauchySlab

PARTS: dict[str, tuple[type, ...]] = {
    "inclusion": (BetaInclusion, FixedInclusion, BlockInclusion, AttributeInclusion),
    "slab": (GammaSlab, FixedSlab, StudentSlab, CauchySlab),
    "bias": (NormalBias,),
    "difference": (BetaInclusion, FixedInclusion),
    "difference_slab": (GammaSlab, FixedSlab),
}

# Of a slab of its own: numbers in log odds that are no slips of the pen.
LARGEST_MEAN, SMALLEST_SD, LARGEST_SD = 50.0, 1e-3, 100.0

EdgeProbabilities = np.ndarray | Mapping[Clique, float]


@dataclass(frozen=True, eq=False)
class Prior:
    """The whole prior (2.1).

    Parameters
    ----------
    inclusion : BetaInclusion, FixedInclusion, BlockInclusion or AttributeInclusion
        Prior of the inclusion probabilities: one for all, learned or fixed; communities of variables; or
        attributes of the variables.
    slab : GammaSlab, FixedSlab, StudentSlab or CauchySlab
        Prior of the active parameters: normal with a scale that is learned or fixed, or with heavier tails.
    bias : NormalBias
        Prior of the biases.
    edge_probability : mapping or (p, p) array, optional
        Inclusion probabilities of single cliques, for instance ``{("a", "b"): 0.9}``; in an array NaN
        means "as all others". Zero forbids a clique and one forces it.
    forced, forbidden : sequence of cliques
        Cliques that are always or never active, by names or indices.
    edge_slab : mapping, optional
        Mean and standard deviation of single parameters given that they are active, as earlier studies
        have them: ``{("a", "b"): (0.8, 0.3)}``. They do not inform sigma0.
    difference, difference_slab : as inclusion and slab
        Where groups are compared: prior of the probability q0 that a pair which is present differs between
        them, and of the standard deviation sigma_D of the difference of two groups (13.1).

    Examples
    --------
    >>> from edgewise import SpikeSlabMRF
    >>> from edgewise.priors import FixedInclusion, Prior
    >>> prior = Prior(inclusion=FixedInclusion(0.2), forced=[("rain", "umbrella")])
    >>> SpikeSlabMRF(prior=prior).prior.forced
    [('rain', 'umbrella')]
    """

    inclusion: Inclusion = field(default_factory=BetaInclusion)
    slab: Slab = field(default_factory=GammaSlab)
    bias: NormalBias = field(default_factory=NormalBias)
    edge_probability: EdgeProbabilities | None = None
    forced: Sequence[Clique] = ()
    forbidden: Sequence[Clique] = ()
    edge_slab: Mapping[Clique, tuple[float, float]] | None = None
    difference: BetaInclusion | FixedInclusion = field(default_factory=BetaInclusion)
    difference_slab: GammaSlab | FixedSlab = field(default_factory=GammaSlab)

    def __post_init__(self) -> None:
        """Refuse a part of the wrong kind here rather than where it is first used."""
        for name, kinds in PARTS.items():
            value = getattr(self, name)
            if not isinstance(value, kinds):
                *several, last = [f"{kind.__name__}(...)" for kind in kinds]
                known = f"{', '.join(several)} or {last}" if several else last
                raise DataError(f"The prior's {name} must be {known}, not {value!r}.")

    def __eq__(self, other: object) -> bool:
        """Whether two priors say the same."""
        return isinstance(other, Prior) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict()))

    def resolve(self, features: Features, names: Sequence[str] | None = None) -> ResolvedPrior:
        """Lay the prior out over the cliques of `features`."""
        status = np.full(features.n_cliques, COMMON, np.int8)
        log_odds = np.zeros(features.n_cliques)
        for index, probability in self._single_probabilities(features, names):
            if not 0 <= probability <= 1:
                raise DataError(
                    f"The prior probability of clique {features.label(index, names)} is {probability!r}; "
                    "give a number between 0 and 1."
                )
            if probability == 0:
                status[index] = FORBIDDEN
            elif probability == 1:
                status[index] = FORCED
            else:
                status[index] = SEPARATE
                log_odds[index] = math.log(probability) - math.log1p(-probability)
        for cliques, value in ((self.forced, FORCED), (self.forbidden, FORBIDDEN)):
            for clique in cliques:
                index = features.index(clique, names)
                if status[index] not in (COMMON, value):
                    raise DataError(
                        f"The prior says two different things about clique {features.label(index, names)}; "
                        "keep one of forced, forbidden and edge_probability."
                    )
                status[index] = value
        model = self._model(features, names, status)
        if model is not None:
            status[model.inside] = SEPARATE
            marginal = model.marginal()[model.inside]
            log_odds[model.inside] = np.log(marginal) - np.log1p(-marginal)
        own_mean, own_sd = self._own_slabs(features, names)
        inclusion, slab = self.inclusion, self.slab
        return ResolvedPrior(
            beta_a=inclusion.a if isinstance(inclusion, BetaInclusion) else math.nan,
            beta_b=inclusion.b if isinstance(inclusion, BetaInclusion) else math.nan,
            p0=_mean_rate(inclusion, model),
            gamma_shape=slab.shape if isinstance(slab, GammaSlab) else math.nan,
            gamma_rate=slab.rate if isinstance(slab, GammaSlab) else math.nan,
            sigma0=_typical_scale(slab),
            bias_sd=self.bias.sd,
            status=status,
            log_odds=log_odds,
            freedom=slab.freedom if isinstance(slab, StudentSlab) else float(isinstance(slab, CauchySlab)),
            own_mean=own_mean,
            own_sd=own_sd,
            model=model,
            difference=ResolvedDifference.of(self.difference, self.difference_slab),
        )

    def _model(
        self, features: Features, names: Sequence[str] | None, status: np.ndarray
    ) -> BlockLayout | AttributeLayout | None:
        """The model of inclusion of the candidates that have no probability of their own."""
        inclusion = self.inclusion
        if not isinstance(inclusion, BlockInclusion | AttributeInclusion):
            return None
        if not features.pairs_only:
            raise DataError(
                f"{type(inclusion).__name__} is about pairs of variables; fit pairs only (max_order=2)."
            )
        inside, members = status == COMMON, features.members[:, :2].astype(np.int64)
        if isinstance(inclusion, BlockInclusion):
            return BlockLayout(inclusion, inside, members, features.n_variables)
        labels = [str(i) for i in range(features.n_variables)] if names is None else list(names)
        return AttributeLayout.of(inclusion, inside, members, labels)

    def _own_slabs(
        self, features: Features, names: Sequence[str] | None
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        if not self.edge_slab:
            return None, None
        mean, sd = np.zeros(features.n_cliques), np.zeros(features.n_cliques)
        for clique, given in self.edge_slab.items():
            index = features.index(clique, names)
            label = features.label(index, names)
            try:
                first, second = (float(number) for number in given)
            except (TypeError, ValueError):
                first = second = math.nan
            if not (abs(first) <= LARGEST_MEAN and SMALLEST_SD <= second <= LARGEST_SD):
                raise DataError(
                    f"The slab of clique {label} is {given!r}; give its mean (within {LARGEST_MEAN:g} of 0) "
                    "and its standard deviation, for instance (0.8, 0.3)."
                )
            if sd[index] > 0:
                raise DataError(f"edge_slab names clique {label} twice; name it once.")
            mean[index], sd[index] = first, second
        return mean, sd

    def _single_probabilities(
        self, features: Features, names: Sequence[str] | None
    ) -> list[tuple[int, float]]:
        given = self.edge_probability
        if given is None:
            return []
        if isinstance(given, Mapping):
            found = {}
            for clique, value in given.items():
                index = features.index(clique, names)
                if index in found:
                    raise DataError(
                        f"edge_probability names clique {features.label(index, names)} twice; name it once."
                    )
                if not isinstance(value, int | float | np.number):
                    raise DataError(
                        f"The prior probability of clique {features.label(index, names)} is {value!r}; "
                        "give a number between 0 and 1."
                    )
                found[index] = float(value)
            return list(found.items())
        matrix = np.asarray(given, float)
        p = features.n_variables
        if matrix.shape != (p, p) or not np.array_equal(matrix, matrix.T, equal_nan=True):
            raise DataError(
                f"edge_probability must be a symmetric {p} x {p} matrix (NaN = as all others) or a mapping "
                f"from cliques to probabilities; this one has shape {matrix.shape}."
            )
        rows, columns = np.triu_indices(p, 1)
        given_at = np.flatnonzero(~np.isnan(matrix[rows, columns]))
        return [
            (features.index((int(rows[k]), int(columns[k])), names), float(matrix[rows[k], columns[k]]))
            for k in given_at
        ]

    def parameters(self) -> dict[str, Any]:
        """The parts, and the numbers of each by nested name, ``inclusion__a``; for searches over a grid."""
        found: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        for name in PARTS:
            own = getattr(self, name)
            found |= {f"{name}__{one.name}": getattr(own, one.name) for one in fields(own)}
        return found

    def with_parameter(self, name: str, value: Any) -> Prior:
        """The same prior with another part (``slab``), or another number of a part (``inclusion__p0``).

        Examples
        --------
        >>> Prior(inclusion=FixedInclusion(0.5)).with_parameter("inclusion__p0", 0.1).inclusion
        FixedInclusion(p0=0.1)
        """
        first, _, second = name.partition("__")
        known = [part.name for part in fields(self)]
        if first not in known or (second and first not in PARTS):
            raise DataError(f"A prior has no {name!r}; it has {', '.join(known)}.")
        if not second:
            return replace(self, **{first: value})
        part = getattr(self, first)
        own = [one.name for one in fields(part)]
        if second not in own:
            raise DataError(
                f"{type(part).__name__} has no {second!r}; it has {', '.join(own)}. Another kind of part is "
                f"given whole, for instance prior__{first}={PARTS[first][-1].__name__}(...)."
            )
        return replace(self, **{first: replace(part, **{second: value})})

    def to_dict(self) -> dict[str, Any]:
        """Plain values for files and reports; :meth:`from_dict` reads them back.

        What is said of differences is left out where it is the default.
        """
        given = self.edge_probability
        differences = {
            name: _part_values(part)
            for name, part in (("difference", self.difference), ("difference_slab", self.difference_slab))
            if part not in (BetaInclusion(), GammaSlab())
        }
        return differences | {
            "inclusion": _part_values(self.inclusion),
            "slab": _part_values(self.slab),
            "bias": _part_values(self.bias),
            "edge_probability": None
            if given is None
            else [[_plain(clique), float(value)] for clique, value in given.items()]
            if isinstance(given, Mapping)
            else [[None if np.isnan(v) else float(v) for v in row] for row in np.asarray(given, float)],
            "edge_probability_kind": None
            if given is None
            else ("mapping" if isinstance(given, Mapping) else "matrix"),
            "forced": [_plain(clique) for clique in self.forced],
            "forbidden": [_plain(clique) for clique in self.forbidden],
            **(
                {"edge_slab": [[_plain(c), [float(x) for x in pair]] for c, pair in self.edge_slab.items()]}
                if self.edge_slab
                else {}
            ),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Prior:
        """Rebuild a prior from :meth:`to_dict`."""
        kinds = {kind.__name__: kind for part in PARTS.values() for kind in part}

        def part(name: str) -> Any:
            fields = dict(values[name])
            if not isinstance(fields.get("table", {}), Mapping):
                # Attributes are kept with a prior: a path in its place would open a file of someone's choice.
                raise DataError("The table of attributes of a stored prior must be a mapping.")
            return kinds[fields.pop("kind")](**fields)

        given: Any = values.get("edge_probability")
        if given is not None and values.get("edge_probability_kind") == "mapping":
            given = {tuple(clique): value for clique, value in given}
        elif given is not None:
            given = np.array([[np.nan if v is None else v for v in row] for row in given], float)
        return cls(
            inclusion=part("inclusion"),
            slab=part("slab"),
            bias=part("bias"),
            edge_probability=given,
            forced=tuple(tuple(clique) for clique in values.get("forced", ())),
            forbidden=tuple(tuple(clique) for clique in values.get("forbidden", ())),
            edge_slab={tuple(clique): tuple(pair) for clique, pair in values.get("edge_slab") or ()} or None,
            **{name: part(name) for name in ("difference", "difference_slab") if name in values},
        )


def _part_values(part: Any) -> dict[str, Any]:
    """A part of the prior in plain values, with its kind."""
    return {"kind": type(part).__name__, **(part.to_dict() if hasattr(part, "to_dict") else asdict(part))}


def _mean_rate(inclusion: Inclusion, model: BlockLayout | AttributeLayout | None) -> float:
    """p0, or its prior mean."""
    if isinstance(inclusion, BetaInclusion):
        return inclusion.a / (inclusion.a + inclusion.b)
    if isinstance(inclusion, FixedInclusion):
        return inclusion.p0
    assert model is not None
    own = model.marginal()[model.inside]
    return float(own.mean()) if len(own) else 0.5


def _typical_scale(slab: Slab) -> float:
    """sigma0, or a typical value of it."""
    if isinstance(slab, GammaSlab):
        return math.sqrt(slab.rate / slab.shape)
    return slab.sigma0 if isinstance(slab, FixedSlab) else slab.scale


def _plain(clique: Clique) -> list[int | str]:
    """A clique that fits into JSON."""
    return [variable if isinstance(variable, str) else int(variable) for variable in clique]
