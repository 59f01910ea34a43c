"""Documents, findings and tables as text for a terminal: functions of their arguments that print nothing.

The layout is written by hand. It imports and runs in a few milliseconds; a terminal library takes longer than
that to import alone, and no output here needs what it can do more. Import from the modules: this one stays empty, so
that a command loads only what it shows.
"""
