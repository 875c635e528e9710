"""The experiments of Chen & Welling (2012): one thin module per figure over one shared, resumable runner.

``profiles`` says how much to compute, ``data`` what to learn from, ``methods`` how; a figure module lists its
tasks, turns their results into tables and draws them; ``claims`` reads the tables and ``gallery`` writes the
page.
"""
