"""Serve runs to programs that speak the Model Context Protocol: list, read, parse, compare, explain and query; all read-only.

In: requests on stdin. Out: answers on stdout, bounded in rows, bytes and time. Files outside the given roots are refused.
Start with ``server``.
"""
