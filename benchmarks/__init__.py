"""Timings printed by hand-run modules; nothing here is a test."""
