"""Tables about the engines: accuracy, speed, recovery, kernel, growth, robustness, bias, memory.

Run with ``python -m benchmarks.engines [TABLE ...] [--fresh] [--only TEXT] [--stored]``. Engines run with
their defaults. Every case is stored in ``benchmarks/results`` when it is done; a second call goes on with
those that are missing.
"""
