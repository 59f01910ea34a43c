"""Map commands and options to calls, and errors to exit codes.

In: the command line. Out: text or JSON on stdout, messages on stderr, an exit code. No other room imports this one.
Start with ``commands`` (the list of commands), ``app`` (words to calls, by Typer), ``main`` (errors to exit codes).
"""
