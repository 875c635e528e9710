"""The report: one self-contained HTML page of a posterior, and its edges and blank cells as CSV files."""

from __future__ import annotations

from edgewise.report.build import write_report
from edgewise.report.tables import write_edges_csv, write_imputed_csv

__all__ = ["write_edges_csv", "write_imputed_csv", "write_report"]
