"""Numba kernels: arrays in, arrays out, the random state an argument. Nothing else is imported."""
