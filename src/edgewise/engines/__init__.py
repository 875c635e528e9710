"""Engines: each draws from the posterior of one chain; all keep the protocol of ``protocol.py``."""
