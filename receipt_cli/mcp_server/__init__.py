"""Serve runs to programs that speak the Model Context Protocol: list, read, parse, compare, explain and query; all read-only.

In: requests on stdin. Out: answers on stdout, bounded in rows, bytes and time. Files outside the given roots are refused.
Start with ``server``.
"""

from receipt_cli.rooms import doors

PUBLIC = {"server": "Limits serve"}
__getattr__, __dir__ = doors(__name__, PUBLIC)
