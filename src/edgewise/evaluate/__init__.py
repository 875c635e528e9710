"""Scores of learned structure and parameters against a known truth: any method, one table."""

from edgewise.evaluate.curves import density_curve, path_curve, precision_recall_curve, reliability_curve
from edgewise.evaluate.estimates import Estimate, read_estimate
from edgewise.evaluate.scores import (
    SCORES,
    average_precision,
    brier_score,
    calibration_error,
    compare,
    coupling_error,
    edge_scores,
    roc_auc,
    structural_hamming_distance,
)

__all__ = [
    "SCORES",
    "Estimate",
    "average_precision",
    "brier_score",
    "calibration_error",
    "compare",
    "coupling_error",
    "density_curve",
    "edge_scores",
    "path_curve",
    "precision_recall_curve",
    "read_estimate",
    "reliability_curve",
    "roc_auc",
    "structural_hamming_distance",
]
