"""Pictures of posteriors and models.

Every function takes ``ax=`` (a new figure by default) and returns the axes, so a plot can be placed,
changed and saved with Matplotlib's own means. ``PLOTS`` lists the kinds that need no more than a posterior
(some want data, a truth or an image shape as an option) and are offered by ``edgewise plot KIND``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edgewise.plots.checks import predictive, predictive_panels
from edgewise.plots.communities import communities
from edgewise.plots.differences import difference_forest, difference_network, group_networks
from edgewise.plots.evidence import edge_evidence, forest
from edgewise.plots.images import image_sheet, samples
from edgewise.plots.matrix import inclusion_matrix
from edgewise.plots.network import evidence_network, network
from edgewise.plots.prior import prior_networks
from edgewise.plots.scores import calibration, density_curve, precision_recall
from edgewise.plots.sensitivity import sensitivity
from edgewise.plots.structure import centrality, structures
from edgewise.plots.traces import edge_count, histogram, inclusion_rate, rank, slab_scale, trace, trace_panels

PLOTS: dict[str, Callable[..., Any]] = {
    "network": network,
    "inclusion": inclusion_matrix,
    "evidence": edge_evidence,
    "evidence-network": evidence_network,
    "forest": forest,
    "centrality": centrality,
    "structures": structures,
    "edge-count": edge_count,
    "p0": inclusion_rate,
    "sigma0": slab_scale,
    "trace": trace,
    "rank": rank,
    "predictive": predictive,
    "precision-recall": precision_recall,
    "samples": samples,
    "communities": communities,
    "difference-network": difference_network,
    "difference-forest": difference_forest,
}
"""Kind of plot -> function ``(posterior, ax=None, **options)``."""

__all__ = [
    "PLOTS",
    "calibration",
    "centrality",
    "communities",
    "density_curve",
    "difference_forest",
    "difference_network",
    "edge_count",
    "edge_evidence",
    "evidence_network",
    "forest",
    "group_networks",
    "histogram",
    "image_sheet",
    "inclusion_matrix",
    "inclusion_rate",
    "network",
    "precision_recall",
    "predictive",
    "predictive_panels",
    "prior_networks",
    "rank",
    "samples",
    "sensitivity",
    "slab_scale",
    "structures",
    "trace",
    "trace_panels",
]
