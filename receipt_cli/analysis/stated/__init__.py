"""Facts of a run that its log lacks and that somebody stated later, and what they complete: rates, MFU, cost, energy."""
