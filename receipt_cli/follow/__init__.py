"""Following the log of a job that runs: what is appended goes into the same fold, and the receipt comes at its end."""
