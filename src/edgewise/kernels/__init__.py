"""Numba kernels: arrays in, arrays out, the random state an argument. They import nothing else of edgewise."""
