"""Where the wall time of a run went: its stamps, its steps, and what stands between them."""
