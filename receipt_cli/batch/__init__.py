"""Many logs → receipts in a store: on one machine or several, resumable, and the same bytes whoever does it."""
