"""Many chains: options, workers, stopping, checkpoints, progress and Ctrl-C around one engine."""
