"""Benchmarks of the samplers, run with ``python -m examples.benchmarks`` (see ``--help``)."""
