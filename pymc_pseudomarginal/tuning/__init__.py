"""Tuning: from a target and a starting point to one frozen `Tuned`, before any chain runs."""
