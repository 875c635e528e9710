"""Puts this directory on the path, so that tests can import ``helpers`` and other shared modules."""
