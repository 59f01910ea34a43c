"""Find the runs at which a lane changed, and the header fields that changed there.

In: receipts of a store. Out: a history document: change points, spikes, candidate causes.
Start with ``lane_history``, then ``changes`` (the statistics).
"""
