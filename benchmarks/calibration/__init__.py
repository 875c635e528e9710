"""Are stated probabilities right? See ``python -m benchmarks.calibration --help``."""
