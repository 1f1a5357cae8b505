"""Where a run's metrics go beside its folder: one file a tracker, imported only when asked for."""
