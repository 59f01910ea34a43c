"""What changed when a lane slowed down: change points over the runs of a store, and the header fields that changed there."""
