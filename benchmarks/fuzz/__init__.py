"""Damaged, forged and nonsensical inputs for everything that reads: ``python -m benchmarks.fuzz``."""
