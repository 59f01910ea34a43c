"""Options ↔ calls, errors ↔ exit codes; one file a command group."""
