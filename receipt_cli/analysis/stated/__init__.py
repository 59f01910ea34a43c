"""Facts stated later for a run, and the figures they complete: rates, MFU, cost, energy."""
