"""Load the shipped definitions: metrics, failure markers, accelerators, units.

In: YAML in ``grammars/`` and ``schemas/``, or its compiled form. Out: frozen tables; a broken file raises ``DataError``.
Start with ``metrics`` (the registry), ``resources`` (the places of the files).
"""
