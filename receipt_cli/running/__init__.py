"""``receipt run``: a command as it would run alone, with its output kept and its end recorded."""
