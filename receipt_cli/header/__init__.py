"""The captured header of a receipt: one file one source of facts, every value with its origin."""
